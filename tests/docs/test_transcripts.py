"""What finds the commands of a page and compares what they print."""

from tools.site.transcripts import agrees, commands_of, is_an_answer, renewed, rewrite

PAGE = """# Page

```console
$ peaksight run train.py
Fits: 1.00 GiB, 3 s
...
the end
$ torchrun train.py    # on two cards; not tested: needs a GPU
```

```python
$ no command
```

```console
$ peaksight gpus \\
    --mig
the slices
```
"""


def test_commands_of_a_page():
    """With what is shown below them, and why they are not tested."""
    run, torchrun, gpus = commands_of(PAGE)

    assert ("peaksight run train.py", ("Fits: 1.00 GiB, 3 s", "...", "the end")) == (run.text, run.shown)
    assert (None, "needs a GPU", None) == (run.reason, torchrun.reason, gpus.reason)
    assert ("peaksight gpus --mig", ("the slices",)) == (gpus.text, gpus.shown)
    assert () == torchrun.shown


def test_what_is_printed_is_compared():
    """Times of the machine do not count, sizes and lines do."""
    shown = commands_of(PAGE)[0].shown

    assert agrees(shown, "Fits: 1.00 GiB, 7.5 s\na\nb\nthe end\n")
    assert agrees(shown, "Fits: 1.00 GiB, 7.5 s\nthe end\n")
    assert not agrees(shown, "Fits: 1.01 GiB, 7.5 s\nthe end\n")
    assert not agrees(shown, "Fits: 1.00 GiB, 3 s\nthe end\nor not\n")
    assert not agrees(("a",), "a\nb\n")
    assert not agrees(("a", "b"), "a\n")
    assert agrees(("torch 2.14.1 · 2.14 GiB",), "torch 2.15.0+cu132 · 2.14 GiB\n")
    assert not agrees(("torch 2.14.1 · 2.14 GiB",), "torch 2.14.1 · 2.15 GiB\n")


def test_the_page_is_written_anew():
    """Only where something else is printed; lines that were left out stay out."""
    printed = {"peaksight run train.py": "Fits: 2.00 GiB, 4 s\nmore\nthe end\n"}
    anew = rewrite(PAGE, printed)

    assert PAGE.replace("1.00 GiB, 3 s", "2.00 GiB, 4 s") == anew
    assert anew == rewrite(anew, {"peaksight run train.py": "Fits: 2.00 GiB, 5 s\nthe end\n"})
    assert ["other", "lines"] == renewed(("Fits: 1 GiB", "..."), "other\nlines\n")


def test_a_job_that_does_not_fit_is_an_answer():
    """No answer is none, and a script of the reader's has to end well."""
    assert is_an_answer("peaksight run train.py", 1)
    assert not is_an_answer("peaksight run train.py", 2)
    assert not is_an_answer("python train.py", 1)
