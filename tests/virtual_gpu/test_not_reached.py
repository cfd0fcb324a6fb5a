"""GIVEN a training loop of which a few steps are run, THEN what it did not come to is named if it uses the card."""

import contextlib
import os
import sys
import textwrap

import pytest

from peaksight.errors import StopSimulation
from peaksight.overlays.patches import Patches
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script import run_script
from peaksight.virtual_gpu.unreached import Lookout

from .cards import h100

pytestmark = pytest.mark.torch

STEPS = 3
HEAD = """\
import argparse, logging, sys, torch
from torch import nn
net = nn.Linear(8, 8).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
sched = torch.optim.lr_scheduler.StepLR(opt, 10)
args = argparse.Namespace(amp=False, every=100, resume=None)
history, log = [], logging.getLogger("train")
def batch():
    return torch.ones(4, 8, device="cuda")
def evaluate(model, data):
    with torch.no_grad():
        return model(data).sum().item()
"""
STEP = "x = batch(); out = net(x); loss = out.sum(); loss.backward(); opt.step(); opt.zero_grad()\n"


@pytest.fixture
def not_reached(tmp_path, monkeypatch):
    """Runs a script of `HEAD` and some lines for three steps; gives what was not reached, numbered after `HEAD`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def named(line, head):
        file, _, number = line.at.partition(":")
        return f"{int(number) - head.count(chr(10)) if file == 'train.py' else line.at}: {line.text}"

    def run(source, head=HEAD):
        (tmp_path / "train.py").write_text(head + textwrap.dedent(source).replace("STEP", STEP.strip()))
        lines = look(tmp_path)
        return None if lines is None else [named(line, head) for line in lines]

    return run


def look(directory):
    """Run `train.py` of `directory`."""
    lookout = Lookout(str(directory))
    with h100(lookout=lookout, max_steps=STEPS), Patches() as patches, contextlib.suppress(StopSimulation):
        lookout.install(patches)
        assert run_script(ScriptCommand(target="train.py"), lookout.files.compile).exit_code == 0
    return lookout.not_reached()


def test_branches_of_the_loop_and_what_follows(not_reached):
    """Validation every hundred steps, saving at the end of an epoch, a test after the loop; each branch once."""
    assert not_reached("""\
        def main():
            best = 0
            for epoch in range(10):
                for step in range(1000):
                    STEP
                    if step % 100 == 99:
                        score = evaluate(net, x)
                        evaluate(net, x)
                    elif step == 500:
                        out.std()
                    else:
                        out.mean()
                    if step % args.every == 99:
                        torch.save(net.state_dict(), "x.pt")
                score = evaluate(net, x)
                if score > best:
                    torch.save({"model": net.state_dict()}, "best.pt")
            print("test:", evaluate(net, x))
        main()
        """) == [
        "6: if step % 100 == 99",
        "9: if step == 500",
        "13: if step % args.every == 99",
        "15: score = evaluate(net, x)",
        "16: if score > best",
        "18: print('test:', evaluate(net, x))",
    ]


def test_what_uses_no_memory_is_not_named(not_reached):
    """Logging, counters, schedulers, progress, plain lists, and numbers on the card."""
    assert [] == not_reached("""\
        told = logging.LoggerAdapter(log, {})
        told.model = net
        for step in range(1000):
            STEP
            if step % 100 == 99:
                print(loss, loss.item(), f"{step}")
                log.info("loss %s of %s", loss.item(), x.shape)
                history.append(loss.detach())
                history.append(out)
                sched.step()
                told.info("of a library's object that has the model")
                net.eval(); net.train(); net.requires_grad_(True)
                out.size(0), out.cpu(), out.view(-1), loss * 2
                count = sum(p.numel() for p in net.parameters())
                torch.manual_seed(0); torch.cuda.synchronize(); torch.cuda.empty_cache()
        print("done", sum(history))
        """)


@pytest.mark.parametrize(
    "work",
    [
        "out.argmax(-1)",
        "out + x",
        "torch.cat([out, x])",
        "nn.functional.relu(later)",
        "torch.zeros(8, device='cuda')",
        "copy = later.cuda()",
        "torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
        "validate()",
        "(lambda: 0)(); [evaluate(net, d) for d in history]",
        "torch.save({}, 'x.pt')",
    ],
)
def test_what_uses_the_card(work, not_reached):
    """Operators, modules, functions of torch, own functions that do, also through others."""
    script = f"""\
        def validate():
            return evaluate(net, batch())
        step = 0
        while True:
            STEP
            step += 1
            if step % 100 == 0:
                {work}
        """

    assert not_reached(script) == ["7: if step % 100 == 0"]


def test_branches_that_are_never_taken_are_not_waited_for(not_reached):
    """What a setting decides is decided: only what changes in the loop may come."""
    assert not_reached("""\
        def main(scaler=None, save=False):
            amp = args.amp
            for step in range(1000):
                STEP
                if args.amp:
                    net(x)
                elif amp or scaler is not None:
                    net(x)
                if args.amp and step % 100 == 99:
                    net(x)
                if not amp:
                    if step % 100 == 99:
                        net(x)
            if save:
                torch.save(net, "x.pt")
            if args.resume is not None:
                net(x)
            if args.every:
                with torch.no_grad():
                    net(x)
        main()
        """) == ["12: if step % 100 == 99", "20: net(x)"]


def test_in_functions_that_the_loop_calls(not_reached, tmp_path):
    """Also of other modules, those that called it, and what a number given to them decides."""
    (tmp_path / "engine.py").write_text("""\
import torch

def train_step(net, opt, x, step, clip=None):
    net(x).sum().backward()
    opt.step()
    opt.zero_grad()
    log_step(net, x, step)
    if clip:
        net(x)

def log_step(net, x, step):
    if step % 50 == 49:
        net(x)

def validate(net, x):
    return net(x)
""")
    assert not_reached("""\
        import engine
        def fit(epochs):
            for epoch in range(epochs):
                for step in range(1000):
                    engine.train_step(net, opt, batch(), step)
                engine.validate(net, batch())
        fit(2)
        net(batch())
        """) == ["6: engine.validate(net, batch())", "8: net(batch())", "engine.py:12: if step % 50 == 49"]


def test_what_was_reached_in_the_end_is_not_named(not_reached):
    """A run to the end of the script names only what was never taken."""
    assert not_reached("""\
        for step in range(2):
            STEP
            if step == 1:
                evaluate(net, x)
            if step == 7:
                evaluate(net, x)
        net(x)
        """) == ["5: if step == 7"]


def test_every_kind_of_branch(not_reached):
    """Loops, `match`, `else` of a loop; code for exceptions is not waited for."""
    assert not_reached("""\
        for step in range(1000):
            STEP
            match step:
                case 100:
                    net(x)
                case _:
                    pass
            for late in range(step - 100):
                net(x)
            try:
                pass
            except RuntimeError:
                net(x)
            if step < 100:
                continue
            net(x)
        else:
            net(x)
        """) == ["4: case 100", "8: for late in range(step - 100)", "16: net(x)", "18: else of for step in range(1000)"]


def test_the_tensors_of_the_loop_live_no_longer(not_reached):
    """Looking at the names of a function keeps nothing alive that the script lets go of."""
    assert [] == not_reached("""\
        import gc, weakref
        def main():
            before = None
            for step in range(1000):
                if before is not None:
                    assert before() is None, gc.get_referrers(before())
                STEP
                before = weakref.ref(out)
                del out, loss
        main()
        """)


def test_without_a_training_loop_nothing_is_known(not_reached):
    """None is not the same as none found."""
    assert not_reached("net(batch())") is None


def test_a_file_that_cannot_have_probes_runs_without(not_reached, monkeypatch):
    """Nothing is known of it then."""
    monkeypatch.setattr("peaksight.virtual_gpu.unreached.probed_files.compile_with_probes", refuse)

    assert not_reached("for step in range(1000):\n    STEP\nnet(x)") is None


def test_objects_that_cannot_be_looked_at(not_reached, monkeypatch):
    """The run goes on to its end, and nothing is known."""

    class Hidden:
        __class__ = property(lambda self: 1 / 0)

    monkeypatch.setattr("builtins.hidden", Hidden(), raising=False)

    assert (
        not_reached("""\
        import os
        for step in range(2):
            STEP
            if step == 100:
                hidden.evaluate()
        os.mkdir("reached")
        """)
        is None
    )
    assert os.path.isdir("reached")


def refuse(source, filename):
    """A compiler that understands nothing."""
    raise ValueError(filename)


LIGHTNING = """\
import torch, lightning
from torch import nn

class Lit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def training_step(self, batch, batch_idx):
        if batch_idx == 20:
            self.net(batch[0])
        return self.net(batch[0]).sum()

    def validation_step(self, batch, batch_idx):
        self.net(batch[0])

    def on_validation_epoch_end(self):
        print("no device work")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

if __name__ == "__main__":
    rows = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(64, 8)))
    quiet = dict.fromkeys(("enable_progress_bar", "logger", "enable_checkpointing", "enable_model_summary"), False)
    trainer = lightning.Trainer(max_epochs=1, accelerator="gpu", num_sanity_val_steps=0, **quiet)
    trainer.fit(Lit(), rows, rows)
    trainer.validate(trainer.model, rows)
"""


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")
def test_hooks_of_a_framework(not_reached):
    """Methods that Lightning did not call yet, branches in those that it did, and what follows `fit`."""
    pytest.importorskip("lightning")

    assert not_reached(LIGHTNING, head="") == [
        "10: if batch_idx == 20",
        "14: validation_step",
        "28: trainer.validate(trainer.model, rows)",
    ]


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")
def test_checkpoints_of_lightning(not_reached):
    """Its callback saves them when an epoch ends."""
    pytest.importorskip("lightning")
    source = LIGHTNING.replace('"enable_checkpointing", ', "")

    assert "27: Trainer saves: ModelCheckpoint" in not_reached(source, head="")
    assert "27: Trainer saves: ModelCheckpoint" not in not_reached(source.replace("ones(64", "ones(2"), head="")


TRAINER = """\
import torch
from torch import nn
from transformers import Trainer, TrainingArguments
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)
    def forward(self, x):
        loss = self.net(x).sum()
        return {"loss": loss, "logits": loss}
rows = [{"x": torch.ones(8)}] * 64
settings = dict(report_to=[], disable_tqdm=True, include_for_metrics=[], SETTINGS)
trainer = Trainer(Net(), TrainingArguments("out", **settings), train_dataset=rows, eval_dataset=rows[:8])
trainer.train()
"""
SCHEDULES = {
    'eval_strategy="steps", eval_steps=4, save_strategy="best", metric_for_best_model="loss"': [
        'Trainer evaluates: eval_strategy="steps", eval_steps=4',
        'Trainer saves: save_strategy="best"',
    ],
    'eval_strategy="steps", eval_steps=2, save_steps=2, metric_for_best_model="runtime", load_best_model_at_end=True': [
        "Trainer loads the best model: load_best_model_at_end=True",
    ],
    'eval_strategy="epoch", save_strategy="epoch"': [
        'Trainer evaluates: eval_strategy="epoch"',
        'Trainer saves: save_strategy="epoch"',
    ],
    'per_device_train_batch_size=64, eval_strategy="epoch", save_strategy="epoch"': [],
    'save_strategy="no"': [],
}


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("settings", "missed"), SCHEDULES.items(), ids=range(len(SCHEDULES)))
def test_what_a_trainer_does_by_its_settings(settings, missed, not_reached):
    """Evaluations, checkpoints and the best model of transformers' Trainer; two steps of three ended."""
    pytest.importorskip("transformers")

    assert [f"14: {text}" for text in missed] == not_reached(TRAINER.replace("SETTINGS", settings), head="")
