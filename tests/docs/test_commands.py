"""Every command that a page shows is run, and prints what the page shows."""

import re

import pytest

from peaksight.cli import COMMANDS
from peaksight.diagnosis.catalog import every_rule
from tests.docs.pages import PAGES, run_all, text_of
from tools.site.transcripts import REASONS, agrees, commands_of, is_an_answer, renewed

FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
A_COMMAND = re.compile(
    r"^\$? *(?:-? *run: )?(?:\w+=\S+ )*(?:peaksight|torchrun|accelerate|python|pip|make|mkdocs) ", re.M
)
INLINE = re.compile(r"`peaksight ([a-z]+)( [^`]*)?`")


@pytest.mark.torch
@pytest.mark.models
@pytest.mark.slow
def test_every_command(tmp_path):
    """One after the other in a copy of examples/; `make transcripts` takes over what they print today."""
    done, wrong = run_all(tmp_path), []
    for page in PAGES:
        for command in (each for each in commands_of(text_of(page)) if each.reason is None):
            result, place = done[command.text], f"{page}:{command.first}: {command.text}"
            if not is_an_answer(command.text, result.code):
                wrong.append(f"{place}\nended with {result.code}: {result.stderr[-2000:]}")
            elif command.shown and not agrees(command.shown, result.stdout):
                wrong.append(f"{place}\nprints\n" + "\n".join(renewed(command.shown, result.stdout)))

    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_shown_where_they_are_found(page):
    """A block with commands is of the kind `console`; what is not run has one of the known reasons."""
    for kind, block in FENCED.findall(text_of(page)):
        assert kind == "console" or not A_COMMAND.search(block), block
    assert {command.reason for command in commands_of(text_of(page))} <= REASONS | {None}


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_sentences(page):
    """Each is one of peaksight's, and its options in front of the script are."""
    for name, words in INLINE.findall(text_of(page)):
        if name in ("is", "run", *COMMANDS):
            options = {option for each in COMMANDS[name].params for option in (*each.opts, *each.secondary_opts)}
            before_the_script = re.split(r"\S+\.(?:py|sh)\b|\b(?:python|torchrun|accelerate) ", words)[0]
            named = set(re.findall(r'(?<![\w"-])--[a-z][a-z-]*', re.sub(r'"[^"]*"|\'[^\']*\'', "", before_the_script)))
            assert named <= options | {"--help"}, (name, words)
        else:
            pytest.fail(f"`peaksight {name}` is no command")


def test_rules_that_the_questions_name():
    """Each is one."""
    named = re.findall(r"\(`([a-z-]+)`\)", text_of("docs/faq.md"))

    assert len(named) > 5
    assert set(named) <= set(every_rule())
