"""Projects of several files, as people publish them: GIVEN one, WHEN it is run unmodified, THEN its report.

Each project is copied to an empty directory, its data prepared there, and run from there as its own docstring says.
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers_commands import peaksight
from peaksight.units import GIB, MIB

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PROJECTS = Path(__file__).parent


@pytest.fixture
def project(tmp_path):
    """Makes a copy of a project; its `python` and `peaksight` run commands in it."""

    def make(name):
        home = tmp_path / name
        shutil.copytree(PROJECTS / name, home, ignore=shutil.ignore_patterns("__pycache__"))
        return Project(home)

    return make


class Project:
    """A directory with a project in it."""

    def __init__(self, home):
        self.home = home

    def python(self, *words):
        """Run a script of the project for real."""
        subprocess.run([sys.executable, *words], cwd=self.home, check=True, capture_output=True, timeout=240)

    def run(self, *words, memory=None):
        """The report of `peaksight run` on a T4, with its exit code and what went to stderr."""
        card = ["--gpu", "t4", *(["--memory", memory] if memory else [])]
        before = files_of(self.home)
        done = peaksight("run", *card, "--json", "-", *words, cwd=self.home)
        assert done.stdout, done.stderr
        assert before == files_of(self.home)
        facts = json.loads(done.stdout, object_hook=lambda values: SimpleNamespace(**values))
        facts.exit_code, facts.stderr = done.returncode, done.stderr
        return facts


def files_of(home):
    """The files of a directory, but for those that Python keeps for itself."""
    return {path for path in home.rglob("*") if "__pycache__" not in path.parts}


def check_fit(report, *, num_steps=3):
    """It fits after a steady run, its live set adds up, and nearly all of it has a line and a category."""
    assert (0, True, None) == (report.exit_code, report.fits, report.oom), report.stderr
    assert "steady" == report.finished
    assert len(report.steps) >= num_steps
    check_live_set(report)


def check_steps(report):
    """The same of a run of as many steps as were asked for."""
    assert (0, True, None, "steps") == (report.exit_code, report.fits, report.oom, report.finished), report.stderr
    check_live_set(report)


def check_oom(report, line):
    """It does not fit, fails at a line that starts with `line`, and what it needs is known from a second run."""
    assert (1, False) == (report.exit_code, report.fits), report.stderr
    assert report.oom.at.startswith(line)
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate" in report.stderr
    assert report.oom.requested_bytes + report.oom.allocated_bytes > report.gpu.usable_bytes / 2
    assert report.peak.reserved_bytes > report.gpu.usable_bytes
    check_live_set(report)


def check_live_set(report):
    """The live set adds up to the peak, and hardly a byte of it is without a line or of no known kind."""
    total = report.peak.allocated_bytes
    categories = by("category", report)
    assert total == categories.total()
    assert categories["other"] < total / 100
    assert by("source", report)[""] < total / 100


def by(key, report, **which):
    """The bytes at the peak by `key`, of the holders that are as `which` says."""
    totals = Counter()
    for holder in report.live_at_peak:
        if all(getattr(holder, name) == value for name, value in which.items()):
            totals[getattr(holder, key)] += holder.bytes
    return totals


def files_at_peak(report):
    """The project's files that hold something at the peak, largest first."""
    totals = Counter()
    for source, num_bytes in by("source", report).items():
        totals[source.rpartition(":")[0]] += num_bytes
    return [file for file, _ in totals.most_common()]


def line_of(file, text):
    """Where the only line with `text` is, as reports name it."""
    (number,) = (n for n, line in enumerate((PROJECTS / file).read_text().splitlines(), start=1) if text in line)
    return f"{Path(file).name}:{number}"


def slugs(report):
    """What the report lists as not simulated."""
    return {entry.slug for entry in report.not_simulated}


def written(report):
    """The bytes of each file that the run would have written."""
    return {entry.path: entry.bytes for entry in report.writes if entry.kind == "written"}


def about(num_bytes, *, within=0.05):
    """A size that need not be exact: blocks are rounded up."""
    return pytest.approx(num_bytes, rel=within)


NANOGPT_WIDTH, NANOGPT_DEPTH, NANOGPT_WORDS, NANOGPT_LENGTH = 512, 4, 16_000, 256
NANOGPT_BYTES = 4 * (
    NANOGPT_WIDTH * (NANOGPT_WORDS + NANOGPT_LENGTH + 1) + NANOGPT_DEPTH * (12 * NANOGPT_WIDTH**2 + 2 * NANOGPT_WIDTH)
)


def test_nanogpt(project):
    """A config file and flags change globals; gradients accumulate; a checkpoint holds the model and two moments."""
    nanogpt = project("nanogpt")
    nanogpt.python("data/words/prepare.py")
    report = nanogpt.run("train.py", "config/words.py", "--batch_size=16")
    categories = by("category", report)

    check_fit(report)
    assert {"compile", "values"} <= slugs(report)
    assert ["model.py", "train.py"] == files_at_peak(report)
    assert "backward" == report.peak.phase
    assert about(NANOGPT_BYTES) == categories["parameter"]
    assert about(NANOGPT_BYTES) == categories["gradient"]  # of the micro batches before
    assert about(2 * NANOGPT_BYTES) == categories["optimizer_state"]
    assert {"GPT.lm_head", "GPT.transformer.h.0.mlp.c_fc"} <= set(by("module", report, category="activation"))
    assert about(3 * NANOGPT_BYTES) == written(report)["out-words/ckpt.pt"]


def test_nanogpt_goes_on_from_a_checkpoint(project):
    """GIVEN a checkpoint of a run on the CPU, THEN its optimizer state is there from the first step on.

    The script keeps the loaded weights in a variable of its own, so they are alive beside the model's.
    """
    nanogpt = project("nanogpt")
    nanogpt.python("data/words/prepare.py")
    small = ("config/words.py", "--n_layer=1", "--n_embd=128", "--n_head=2", "--batch_size=2")
    once = ("--eval_iters=1", "--eval_interval=1", "--max_iters=1", "--gradient_accumulation_steps=1")
    nanogpt.python("train.py", *small, *once, "--device=cpu", "--dtype=float32", "--compile=False")
    report = nanogpt.run("train.py", *small, "--init_from=resume", "--compile=False")
    categories = by("category", report)

    check_fit(report)
    assert "compile" not in slugs(report)
    assert report.steps[0].peak_allocated_bytes == pytest.approx(report.steps[-1].peak_allocated_bytes, abs=MIB)
    assert about(2 * categories["parameter"]) == categories["optimizer_state"]
    assert about(categories["parameter"]) == sum(by("source", report, category="input").values())


def test_nanogpt_does_not_fit(project):
    """GIVEN a card of 600 MiB, THEN the failing line is one of model.py."""
    nanogpt = project("nanogpt")
    nanogpt.python("data/words/prepare.py")
    report = nanogpt.run("--steps", "3", "train.py", "config/words.py", "--batch_size=16", memory="600MiB")

    check_oom(report, "model.py:")
    assert "out-words/ckpt.pt" in written(report)


@pytest.mark.models
def test_timm_images(project):
    """A YAML file and flags; mixup, EMA, AMP and LAMB; workers read images; the average is as large as the model."""
    pytest.importorskip("torchvision")
    images = project("timm_images")
    images.python("prepare.py")
    report = images.run("--steps", "4", "train.py", "--config", "small.yaml", "--mixup", "0.2")
    parameters = by("source", report, category="parameter")
    average = parameters[line_of("timm_images/train.py", "= ModelEmaV3(")]

    check_steps(report)
    assert {"train.py"} == set(files_at_peak(report))
    assert about(2 * average) == parameters.total()
    assert {"ResNet.conv1", "ResNet.layer1.0.bn2"} <= set(by("module", report, category="activation"))
    assert by("category", report)["input"] >= 16 * 3 * 224 * 224 * 4
    assert {"args.yaml", "last.pth.tar", "model_best.pth.tar"} <= {Path(path).name for path in written(report)}


@pytest.mark.models
def test_lightning_tabular(project):
    """A module of a package, configured by YAML; Lightning validates, logs and saves a checkpoint of its real size."""
    pytest.importorskip("lightning")
    words = ("-m", "project.train", "--config", "configs/small.yaml", "model.width=2048")
    report = project("lightning_tabular").run("--steps", "3", *words)
    weights = 4 * (513 * 2048 + 3 * (2 * 2048 * 4096 + 4096 + 3 * 2048) + 2049 * 10)

    check_steps(report)
    assert {"project/train.py", "project/model.py"} <= set(files_at_peak(report))
    assert about(weights) == by("category", report)["parameter"]
    assert about(2 * weights) == by("category", report)["optimizer_state"]
    assert "TableClassifier.net.1.up" in by("module", report)
    assert about(3 * weights) == written(report)["checkpoints/last.ckpt"]
    assert any(path.endswith("metrics.csv") for path in written(report))


@pytest.mark.models
def test_preference_dpo(project):
    """A Trainer's subclass with its own loss: the policy is compared with itself without its LoRA adapters."""
    pytest.importorskip("peft")
    report = project("preference").run("--steps", "2", "train.py", "dpo", "--batch-size", "2", "--layers", "2")

    check_steps(report)
    assert "dpo_trainer.py" == files_at_peak(report)[0]
    assert 0 < by("category", report)["optimizer_state"] < by("category", report)["parameter"] / 4
    assert "PeftModelForCausalLM.base_model.model.lm_head" in by("module", report, category="parameter")


@pytest.mark.models
def test_preference_sft(project):
    """Packed documents on a card of 600 MiB: the OOM names the script's line, which trains."""
    pytest.importorskip("peft")
    report = project("preference").run("--steps", "2", "train.py", "sft", "--layers", "2", memory="600MiB")

    check_oom(report, "train.py:")
    assert ["train.py"] == files_at_peak(report)
    assert 4 * 512 * 32_000 * 4 <= by("category", report)["temporary"]  # the logits in single precision


@pytest.mark.models
def test_detection(project):
    """Images of several sizes in lists; proposals and boxes kept are upper bounds, and said to be."""
    pytest.importorskip("torchvision")
    report = project("detection").run("--steps", "3", "train.py", "--batch-size", "2", "--images", "4")

    check_steps(report)
    assert {"shapes", "values", "convolution-workspace"} <= slugs(report)
    assert {"engine.py", "train.py"} <= set(files_at_peak(report)) <= {"engine.py", "train.py", "utils.py"}
    assert any(module.startswith("FasterRCNN.roi_heads") for module in by("module", report))
    weights = by("category", report)["parameter"]
    assert about(2 * weights) == written(report)["checkpoints/model_0.pth"]  # with momentum


@pytest.mark.models
def test_diffusion(project):
    """accelerate prepares and accumulates; images are sampled every epoch; the average of the weights is named."""
    pytest.importorskip("accelerate")
    report = project("diffusion").run("train.py")
    parameters = by("source", report, category="parameter")
    (average,) = (num_bytes for source, num_bytes in parameters.items() if source.startswith("ema.py:"))

    check_fit(report)
    assert "unet.py" == files_at_peak(report)[0]
    assert 2 * average == parameters.total()
    assert about(2 * average) == by("category", report)["optimizer_state"]
    assert {"UNet.head.0", "UNet.ups.0.1.norm1"} <= set(by("module", report, category="activation"))
    files = written(report)
    assert about(2 * average) == files["ddpm-squares/latest/optimizer.bin"]
    assert about(average) == files["ddpm-squares/latest/custom_checkpoint_0.pkl"]
    assert about(8 * 3 * 64 * 64 * 4) == files["ddpm-squares/samples.pt"]


def test_gnn(project):
    """Sampled neighbourhoods, every one of another size; the evaluation of the whole graph makes the peak."""
    report = project("gnn").run("--steps", "5", "train.py", "--conv", "gat")
    steps = [step.peak_allocated_bytes for step in report.steps]

    check_steps(report)
    assert "evaluation" == report.peak.phase
    assert report.peak.at.startswith("layers.py:")
    assert max(steps) == steps[report.peak.step - 1] > 2 * steps[0]
    assert by("category", report)["input"] >= 50_000 * 128 * 4
    assert any(module.startswith("Net.convs.") for module in by("module", report, category="temporary"))


@pytest.mark.models
def test_molecules(project):
    """torch_geometric: graphs of many sizes in one batch; every shape follows from the batch, so none is a bound."""
    if find_spec("torch_geometric") is None:
        pytest.skip("needs torch_geometric")
    report = project("molecules").run("--steps", "4", "train.py", "--conv", "gine")

    check_steps(report)
    assert len({step.peak_allocated_bytes for step in report.steps}) > 1
    assert "shapes" not in slugs(report)
    assert {"model.py", "train.py"} <= set(files_at_peak(report))
    assert any(module.startswith("Net.convs.0") for module in by("module", report, category="activation"))
    assert by("category", report)["optimizer_state"] >= 2 * 4 * 4 * 128 * 128 * 4  # two moments of four MLPs


def test_speech(project):
    """Waveforms in buckets of similar length: log-mel features, a conformer, CTC; checkpoints every epoch."""
    report = project("speech").run("--steps", "5", "train.py")

    check_steps(report)
    assert len({step.peak_allocated_bytes for step in report.steps}) > 1
    assert {"conformer.py", "features.py", "train.py"} <= set(files_at_peak(report))
    assert "Recogniser.encoder.blocks.0.attn" in by("module", report, category="activation")


def test_speech_at_its_worst(project):
    """WHEN every batch is the worst one, THEN the first steps already peak as high as the longest utterances do."""
    report = project("speech").run("--worst-batch", "train.py")

    check_fit(report)
    assert 1 == len({step.peak_allocated_bytes for step in report.steps[1:]})


def test_gan(project):
    """Two optimizers, the first stepping twice as often; a penalty on gradients; an average; a saved state of all."""
    report = project("gan").run("train.py")
    sources = set(by("source", report, category="optimizer_state"))
    modules = {module.partition(".")[0] for module in by("module", report)}

    check_fit(report)
    assert 2 == len(sources)
    assert all(source.startswith("train.py:") for source in sources)
    assert {"Generator", "Discriminator"} <= modules
    assert "networks.py" == files_at_peak(report)[0]
    assert about(16 * 3 * 64 * 64 * 4) == written(report)["samples-0.pt"]
    parameters = by("category", report)["parameter"]
    assert about(parameters + by("category", report)["optimizer_state"]) == written(report)["last.pt"]


def test_ppo(project):
    """Rollouts in a buffer on the card, kept between updates, and minibatches of it."""
    report = project("ppo").run("train.py")
    kept = by("source", report, category="input")
    (buffer,) = (num_bytes for source, num_bytes in kept.items() if source == line_of("ppo/rollout.py", "self.obs ="))

    check_fit(report)
    assert 16 * 128 * 3 * 64 * 64 == buffer
    assert "policy.py" == files_at_peak(report)[0]
    assert {"Agent.trunk.0", "Agent.critic"} <= set(by("module", report))
    assert report.peak.allocated_bytes < GIB
