"""Statements that keep, release or go back through something: what is edited, and what is not."""

import ast
from types import SimpleNamespace

import pytest

from peaksight.planning.fixes import no_grad, released_outputs, separate_backwards
from peaksight.planning.linear_terms import terms_of
from peaksight.planning.statements import Statements, statements_of
from peaksight.planning.stores import store_of


def statements(*lines):
    return Statements("train.py", "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("line", "name", "edited"),
    [
        ("total += loss", "total", "total += loss.detach()"),
        ("total += loss * 2  # log", "total", "total += (loss * 2).detach()  # log"),
        ("total += (loss * 2)", "total", "total += (loss * 2).detach()"),
        ("total = total + f(loss)", "total", "total = total + f(loss).detach()"),
        ("total = loss / 2 + total", "total", "total = (loss / 2).detach() + total"),
        ("losses.append(loss)", "losses[*]", "losses.append(loss.detach())"),
        ("losses.append(-loss)", "losses[3]", "losses.append((-loss).detach())"),
        ("log['loss'].append(loss)", "log['loss'][*]", "log['loss'].append(loss.detach())"),
        ("self.log[step] = loss", "self.log[*]", "self.log[step] = loss.detach()"),
    ],
)
def test_what_keeps_a_value(line, name, edited):
    """The characters around the value stay."""
    found = statements("def main():", "    " + line, "    x = 1")

    store = store_of(found, "train.py:main", name)

    assert found.called_on(store.statement, store.value, ".detach()").replacement == "    " + edited


@pytest.mark.parametrize(
    "lines",
    [
        ("total += a", "total += b"),  # which one
        ("total = a if total is None else total + a",),
        ("if x: total += a",),  # not alone on its line
        ("x = 1; total += a",),
        ("total.extend(a)",),
        ("total.append((a, b))",),
        ("def other():", "    total += a"),  # another variable
    ],
)
def test_what_is_not_found(lines):
    """Nothing is guessed."""
    found = statements("def main():", *("    " + line for line in lines))

    assert store_of(found, "train.py:main", "total") is None


LOOP = ("for x in loader:", "    out = net(x)", "    loss = f(out)", "    loss.backward()")


def last_use(name, *lines):
    """The line after which the variable may go."""
    found = statements(*lines)
    statement = released_outputs._last_use(found, found.tree, name)
    return statement and ast.unparse(statement)


def test_the_last_use_of_a_variable():
    """Where the loop's body last mentions it."""
    assert last_use("out", *LOOP) == "loss = f(out)"
    assert last_use("loss", *LOOP) == "loss.backward()"


@pytest.mark.parametrize(
    "lines",
    [
        (*LOOP, "print(out)"),  # after the loop
        ("out = 0", *LOOP, "print(out)"),
        (*LOOP, "    if x:", "        print(out)"),  # a condition has it last
        ("for x in loader:", "    f(out)", "    out = net(x)"),  # goes from one round to the next
        (*LOOP, "    out += 1; g()"),
        ("def log():", "    print(out)", *LOOP),  # a function of the file reads it
        (*LOOP, "    hooks.append(lambda: out)"),
        (*LOOP, "    print(locals())"),
    ],
)
def test_a_variable_that_is_used_further(lines):
    """It stays."""
    assert last_use("out", *lines) is None


@pytest.mark.parametrize(
    ("statement", "only"),
    [
        ("y = teacher(x)", True),
        ("y = torch.softmax(teacher(x).logits / 1, dim=-1)", False),
        ("y = torch.softmax(teacher(x).logits, dim=-1)", True),
        ("y = F.log_softmax(teacher(x)[0], dim=-1).detach()", True),
        ("y = teacher(x).float().softmax(-1)", True),
        ("y = teacher(x) * scale", False),
        ("y = teacher(x), student(x)", False),
        ("loss = kl(student(x), teacher(x))", True),  # the calls in it tell
        ("if teacher(x): pass", False),
    ],
)
def test_what_computes_a_result_alone(statement, only):
    """With nothing else that may need a gradient."""
    assert no_grad._only_calls(ast.parse(statement).body[0], 1) is only


@pytest.mark.parametrize(
    ("expression", "terms"),
    [
        ("a + b", ["a", "b"]),
        ("(a + 0.5 * b) / n", ["a / n", "0.5 * b / n"]),
        ("2 * (a + b + c)", ["2 * a", "2 * b", "2 * c"]),
        ("a - b", ["a - b"]),
        ("a * b", ["a * b"]),
        ("f(a + b)", ["f(a + b)"]),
    ],
)
def test_terms_of_a_sum(expression, terms):
    """By the laws of arithmetic, and no further."""
    assert [ast.unparse(each) for each in terms_of(ast.parse(expression, mode="eval").body)] == terms


def backwards_of(folder, *lines):
    """The edits for the backward pass on the last of `lines` with one, as lines."""
    (folder / "train.py").write_text("\n".join(lines) + "\n")
    situation = SimpleNamespace(command=SimpleNamespace(target=str(folder / "train.py"), is_module=False))
    line = max(number for number, text in enumerate(lines, 1) if "backward" in text)
    return [edit.replacement for edit in separate_backwards._edits(situation, f"train.py:{line}")]


def test_a_backward_pass_for_each_loss(tmp_path):
    """Behind what makes it; the scaler stays, and one in place of a sum that is computed there."""
    named = ("a = f(x)", "b = f(y)", "loss = a + b", "scaler.scale(loss).backward()")

    assert backwards_of(tmp_path, *named) == ["a = f(x); scaler.scale(a).backward()", "scaler.scale(b).backward()"]
    (tmp_path / "other").mkdir()
    assert backwards_of(tmp_path / "other", "(f(x) + 2 * f(y)).backward()") == [
        "f(x).backward(); (2 * f(y)).backward()"
    ]


def test_the_first_backward_pass_of_several_ranks(tmp_path):
    """Does not wait for the others."""
    lines = ("net = DDP(net)", "a = f(net(x))", "b = f(net(y))", "(a + b).backward()")

    assert backwards_of(tmp_path, *lines) == ["with net.no_sync(): a = f(net(x)); a.backward()", "b.backward()"]


@pytest.mark.parametrize(
    "lines",
    [
        ("a = f(x)", "optimizer.zero_grad()", "b = f(y)", "(a + b).backward()"),
        ("a = f(x)", "b = f(y)", "(a + b).backward(retain_graph=True)"),
        ("a = f(x)", "a = a * 2", "b = f(y)", "(a + b).backward()"),  # which one
        ("if x:", "    a = f(x)", "b = f(y)", "(a + b).backward()"),
        ("net = DDP(net)", "a = f(x)", "b = f(y)", "(a + b).backward()"),  # under whose no_sync
        ("a, b = f(x), f(y)", "(a + b).backward()"),
    ],
)
def test_losses_that_stay_together(tmp_path, lines):
    """Where gradients may be cleared in between, or it is not plain what makes each."""
    assert backwards_of(tmp_path, *lines) == []


def test_modules_are_not_edited():
    """Their folder is not the script's."""
    assert statements_of(SimpleNamespace(command=SimpleNamespace(target="pkg.train", is_module=True)), "a.py") is None
