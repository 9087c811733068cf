"""Frames as Colab and Kaggle give one to an output: their sandboxes, and how Colab puts html in."""

from __future__ import annotations

import html
import json

SANDBOXES = ("allow-scripts", "allow-scripts allow-same-origin")
# Colab's frame has the html put in, and starts the scripts itself.
PUT_IN = """<!doctype html><div id="output"></div><script>
const output = document.getElementById('output');
output.innerHTML = JSON.parse(document.currentScript.previousElementSibling.dataset.html ?? '""');
for (const old of output.querySelectorAll('script')) {
  const script = document.createElement('script');
  script.textContent = old.textContent;
  old.replaceWith(script);
}
</script>"""


def put_in(output: str) -> str:
    return PUT_IN.replace('<div id="output">', f'<div id="output" data-html="{html.escape(json.dumps(output))}">')
