"""Runs `%devtrace` and shows traced cells, without IPython: a Screen publishes for us."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from devtrace.api.options import Options
from devtrace.features import offers
from devtrace.notebook import usage
from devtrace.notebook.cells import Cell, Traced, Tracing
from devtrace.notebook.companion import Screen, show
from devtrace.runtime.device_spec import count_of, names_of
from devtrace.runtime.rank import rank_of_job, ranked_path
from devtrace.runtime.whole_files import write_as_asked
from devtrace.words import language
from devtrace.words.catalogue import comma, sentence
from devtrace.words.errors import UsageError
from devtrace.words.wrapping import table

if TYPE_CHECKING:
    from devtrace.api.results import Report
    from devtrace.contract.forms import Form


AUTO: Final = "auto"
"""JupyterLab's display language, `DEVTRACE_LANGUAGE`, or the locale's."""


class Commands:
    """Subcommands by name, and the two ways of showing a trace."""

    def __init__(self, tracing: Tracing, screen: Screen) -> None:
        self.tracing = tracing
        self.screen = screen

    def run(self, line: str) -> Report | None:
        """Run the subcommand after `%devtrace`; IPython shows the report that it returns."""
        name, argument = usage.command(line)
        if name in self.tracing.companions:
            self.tracing.companions[name].command(argument, self.screen)
            return None
        subcommand: Callable[[str], Report | None] = getattr(self, f"_{name}")
        return subcommand(argument)

    def cell_failed(self, cell: Cell, error: BaseException) -> None:
        """Tell each feature that a cell failed which was not traced."""
        for companion in self.tracing.companions.values():
            companion.cell_failed(cell, error, self.screen)

    # What a traced cell shows.

    def show_asked(self, traced: Traced | None, options: Options) -> None:
        """Show a cell with `%%devtrace`: always its report, and its files."""
        if traced is None:
            _print(sentence("magic.no-torch"))
            return
        show(traced.report, self.screen, timeline=options.timeline)
        try:
            if options.save:
                _write_file(sentence("magic.the-trace"), options.save, options.saver(traced.trace))
            if options.html:
                _write_file(sentence("magic.the-report"), options.html, traced.report.to_html)
            for form in _requested_forms(traced, options):
                key = "magic.the-sarif" if form.what == "cli.sarif" else "magic.the-findings"
                _write_file(sentence(key), form.path, form.write)
        except UsageError as error:
            sys.stderr.write(sentence("run.line", text=error) + "\n")

    def show_in_passing(self, traced: Traced) -> None:
        """Show a cell that only `%devtrace on` traced: its report if something is wrong, else a line, or nothing."""
        if any(finding.severity != "note" for finding in traced.report.findings):
            show(traced.report, self.screen)
        elif traced.report.used_accelerator:
            summary = str(traced.report).splitlines()[0]
            self.screen.publish({"text/plain": sentence("magic.in-passing", label=traced.label, summary=summary)}, {})

    # The kernel's own subcommands, by the names that `usage.COMMANDS` gives them.

    def _on(self, devices: str) -> None:
        if devices:
            self._simulate(devices)
        self.tracing.switch(on=True)
        _print(sentence("magic.on"))

    def _off(self, _: str) -> None:
        self.tracing.switch(on=False)
        _print(sentence("magic.off"))

    def _status(self, _: str) -> None:
        tracing, spec = self.tracing, self.tracing.simulated
        labels, size = comma().join(traced.label for traced in tracing.history), tracing.history.bytes
        rows = {
            "status.traced": sentence("status.every-cell" if tracing.on else "status.asked-cells"),
            "status.simulated": sentence("status.simulated-devices", devices=names_of(spec), spec=spec)
            if spec
            else sentence("status.nothing"),
            "status.torch": sentence("status.torch-imported" if tracing.torch.is_imported else "status.torch-awaited"),
            "status.kept": sentence("status.kept-traces", kept=labels, size=size)
            if labels
            else sentence("status.no-trace"),
        }
        _print(table((sentence(key), value) for key, value in rows.items()))

    def _check(self, _: str) -> None:
        from devtrace.api.environment import describe

        _print(describe())

    def _report(self, key: str) -> Report:
        return self._find_trace(key).report

    def _devices(self, _: str) -> None:
        from devtrace.notebook.device_list import device_list

        bundle = device_list(self.tracing)
        self.screen.publish({"text/plain": bundle["text/plain"]} if self.screen.text_only else bundle, {})

    def _save(self, argument: str) -> None:
        traced, file = self._find_trace(""), argument.removeprefix(usage.CASE)
        options = Options(case=file != argument)
        _write_file(sentence("magic.the-trace-of", label=traced.label), file, options.saver(traced.trace))

    def _simulate(self, devices: str) -> None:
        if devices == "off":
            self.tracing.stop_simulating()
            _print(sentence("magic.not-simulated"))
        else:
            self.tracing.simulate(devices)
            spec = self.tracing.simulated
            _print(sentence("magic.simulated", devices=names_of(spec), count=count_of(spec)))

    def _language(self, name: str) -> None:
        if name not in (*language.LANGUAGES, AUTO):
            raise UsageError.of("language", given=name)
        language.CHOICE.user = None if name == AUTO else language.of_tag(name)
        _print(sentence("magic.language-follows" if name == AUTO else "magic.language"))

    def _renderer(self, name: str) -> None:
        from devtrace.report import renderer

        if name and name not in renderer.CHOICES:
            form = f"renderer [{' | '.join(renderer.CHOICES)}]"
            raise UsageError.of("command-argument", given=f"%devtrace renderer {name}", form=form)
        if name:
            renderer.choose(name)
        key = "magic.renderer-script" if renderer.sends_script() else "magic.renderer-static"
        _print(sentence(key, choice=renderer.choice()))

    def _ignore(self, argument: str) -> None:
        from devtrace.diagnosis import silence

        slugs = list(offers("cost rule"))
        if argument == "off":
            silence.by_session.clear()
        elif argument in slugs:
            silence.by_session.add(argument)
        elif argument:
            form = f"ignore [{' | '.join((*slugs, 'off'))}]"
            raise UsageError.of("command-argument", given=f"%devtrace ignore {argument}", form=form)
        rules = sorted(silence.by_session)
        _print(sentence("magic.ignored", rules=rules, count=len(rules)) if rules else sentence("magic.nothing-ignored"))

    def _help(self, _: str) -> None:
        _print(usage.help_text())

    def _find_trace(self, key: str) -> Traced:
        traced = self.tracing.history.find(key)
        if traced is None:
            kept = self.tracing.history.labels()
            slug = "no-trace.named-kept" if kept else "no-trace.named" if key else "no-trace"
            raise UsageError.of(slug, key=key, kept=kept)
        return traced


def _write_file(what: str, name: str, write: Callable[[Path], object]) -> None:
    """Write a file; the ranks of a job, which run the same cell, write one each."""
    file = ranked_path(name, rank_of_job())
    write_as_asked(file, write, what)
    _print(sentence("magic.written", what=what, file=file))


def _requested_forms(traced: Traced, options: Options) -> Iterator[Form]:
    """Yield the JSON and SARIF files that a cell asks for; without any, nothing is imported."""
    if options.json or options.sarif:
        from devtrace.contract.code_scanning import project_folder
        from devtrace.contract.entries import entries_of
        from devtrace.contract.forms import Forms

        forms = Forms(traced.report, entries_of(traced.report.findings), project_folder(Path.cwd()))
        yield from forms.files(options.json, options.sarif)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
