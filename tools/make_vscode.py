"""Build VS Code's renderer extension, `build/devtrace.vsix`: `make vscode`.

A vsix is a zip with a manifest. This writes one without vsce, which wants a repository, a licence file and a network.
The same sources give the same bytes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import quoteattr
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "build" / "devtrace.vsix"
SOURCES = ROOT / "vscode"
ENTRY = ROOT / "labextension" / "src" / "view" / "vscode.ts"

CONTENT_TYPES = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension=".json" ContentType="application/json"/>'
    '<Default Extension=".js" ContentType="application/javascript"/>'
    '<Default Extension=".md" ContentType="text/markdown"/>'
    '<Default Extension=".vsixmanifest" ContentType="text/xml"/></Types>\n'
)


def main() -> None:
    package = json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))
    package["version"] = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["version"]
    files = {
        "[Content_Types].xml": CONTENT_TYPES,
        "extension.vsixmanifest": manifest(package),
        "extension/package.json": json.dumps(package, indent=2) + "\n",
        "extension/README.md": (SOURCES / "README.md").read_text(encoding="utf-8"),
        "extension/renderer.js": renderer(),
    }
    TARGET.parent.mkdir(exist_ok=True)
    with ZipFile(TARGET, "w", ZIP_DEFLATED, compresslevel=9) as vsix:
        for name, text in files.items():
            vsix.writestr(ZipInfo(name), text, ZIP_DEFLATED, 9)
    sys.stdout.write(f"{TARGET.relative_to(ROOT)}  {TARGET.stat().st_size:,} bytes\n")


def renderer() -> str:
    """Bundle the views and the few lines round them as the module that VS Code loads."""
    options = ["--bundle", "--minify", "--format=esm", "--loader:.css=text", "--log-level=warning"]
    esbuild = [str(ROOT / "node_modules" / ".bin" / "esbuild"), str(ENTRY), *options]
    return subprocess.run(esbuild, capture_output=True, check=True, text=True, encoding="utf-8").stdout


def manifest(package: dict[str, str]) -> str:
    identity = " ".join(
        f"{name}={quoteattr(value)}"
        for name, value in {
            "Language": "en-US",
            "Id": package["name"],
            "Version": package["version"],
            "Publisher": package["publisher"],
        }.items()
    )
    properties = {
        "Microsoft.VisualStudio.Code.Engine": package["engines"]["vscode"],  # type: ignore[index]
        "Microsoft.VisualStudio.Code.ExtensionKind": ",".join(package["extensionKind"]),
        "Microsoft.VisualStudio.Code.ExecutesCode": "false",
    }
    listed = "".join(f"<Property Id={quoteattr(id)} Value={quoteattr(value)}/>" for id, value in properties.items())
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">'
        f"<Metadata><Identity {identity}/><DisplayName>{package['displayName']}</DisplayName>"
        f'<Description xml:space="preserve">{package["description"]}</Description>'
        f"<Categories>{','.join(package['categories'])}</Categories><Properties>{listed}</Properties></Metadata>"
        '<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation><Dependencies/><Assets>'
        '<Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>'
        '<Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>'
        "</Assets></PackageManifest>\n"
    )


if __name__ == "__main__":
    main()
