"""from_pretrained and its like: with weights, and without."""

import json
from collections import Counter

import pytest
import torch
from torch import nn

from peaksight.errors import PeaksightError
from peaksight.records import Phase
from peaksight.virtual_gpu.script import Scratch
from peaksight.virtual_gpu.weights.safetensors_files import write_without_data

from .cards import births_on, h100, requested, slugs

transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.torch, pytest.mark.models]

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "vocab_size": 500,
}
NUM_SHARDS = 3


@pytest.fixture
def offline_gpu(monkeypatch, tmp_path):
    """A virtual H100 without network."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with Scratch() as scratch, h100(files=scratch) as gpu:
        yield gpu


def weights(dtype=torch.bfloat16):
    """The state of the model of CONFIG, without data."""
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIG))
    return {name: tensor.to(dtype) for name, tensor in model.state_dict().items()}


def save_config(directory, **options):
    """The configuration alone."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(CONFIG | {"dtype": "bfloat16"} | options))


def save_shards(directory, state):
    """A checkpoint in several safetensors files and their index."""
    names = [f"model-{i + 1:05}-of-{NUM_SHARDS:05}.safetensors" for i in range(NUM_SHARDS)]
    keys = list(state)
    for i, name in enumerate(names):
        write_without_data({key: state[key] for key in keys[i::NUM_SHARDS]}, directory / name, {"format": "pt"})
    weight_map = {key: names[i % NUM_SHARDS] for i, key in enumerate(keys)}
    size = sum(tensor.nbytes for tensor in state.values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.fixture(scope="module", params=["single", "shards", "pickle"])
def checkpoint(request, tmp_path_factory):
    """A local checkpoint in bfloat16, of one file or several, or a pickle of old."""
    directory = tmp_path_factory.mktemp(request.param)
    save_config(directory)
    if request.param == "single":
        write_without_data(weights(), directory / "model.safetensors", {"format": "pt"})
    elif request.param == "shards":
        save_shards(directory, weights())
    else:
        real = {name: torch.zeros(tensor.shape, dtype=tensor.dtype) for name, tensor in weights().items()}
        torch.save(real, directory / "pytorch_model.bin")
    return directory


@pytest.mark.parametrize(("device_map", "dtype", "itemsize"), [({"": 0}, None, 2), ("cuda", torch.float32, 4)], ids=str)
def test_to_the_card(offline_gpu, checkpoint, device_map, dtype, itemsize):
    """First a block of the model's size, which is given back, then a block for each weight."""
    with births_on(offline_gpu) as births:
        model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=dtype, device_map=device_map)
    warm_up, *others = births
    sizes = Counter(parameter.nbytes for parameter in model.parameters())

    assert warm_up.died < others[0].born
    assert (
        warm_up.requested_bytes
        == sum(sizes.elements())
        == sum(tensor.numel() for tensor in weights().values()) * itemsize
    )
    assert not sizes - Counter(birth.requested_bytes for birth in others if birth.died is None)
    assert {"cuda:0"} == {str(tensor.device) for tensor in model.parameters()}


@pytest.mark.parametrize("options", [{}, {"low_cpu_mem_usage": True}, {"dtype": torch.float16}], ids=str)
def test_to_the_host(offline_gpu, checkpoint, options):
    """Without a device map nothing is on the card until the model is moved there."""
    with births_on(offline_gpu) as births:
        model = transformers.LlamaForCausalLM.from_pretrained(checkpoint, **options)
        num_on_host = len(births)
        model.cuda()
    dtype = options.get("dtype", torch.bfloat16)

    assert {dtype} == {tensor.dtype for tensor in model.parameters()}
    assert (0, len(weights())) == (num_on_host, len([b for b in births if b.requested_bytes > 100]))


def test_device_map_auto(offline_gpu, checkpoint):
    """accelerate asks the card for its room and puts everything there."""
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, device_map="auto")

    assert {"cuda:0"} == {str(tensor.device) for tensor in model.parameters()}


def test_load_checkpoint_and_dispatch(offline_gpu, checkpoint):
    """accelerate's own way from meta to the card."""
    accelerate = pytest.importorskip("accelerate")
    with accelerate.init_empty_weights():
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig.from_pretrained(checkpoint))
    model = accelerate.load_checkpoint_and_dispatch(model, checkpoint, device_map="auto", dtype=torch.bfloat16)

    assert {"cuda:0"} == {str(tensor.device) for tensor in model.parameters()}


def test_train_and_save(offline_gpu, checkpoint, tmp_path):
    """A loaded model trains, is saved in the phase of saving, and loads what it saved."""
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, device_map="cuda")
    tokens = torch.ones(1, 8, dtype=torch.long, device="cuda")
    model(input_ids=tokens, labels=tokens).loss.backward()
    torch.optim.AdamW(model.parameters()).step()
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.t().contiguous().t())
    with births_on(offline_gpu) as births:
        model.save_pretrained(tmp_path / "saved")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "saved")

    assert {Phase.SAVE} == {birth.phase for birth in births}
    assert [tuple(t.shape) for t in model.parameters()] == [tuple(t.shape) for t in again.parameters()]


def test_adapter(offline_gpu, checkpoint, tmp_path):
    """peft puts an adapter's weights on the card, copies them into the layers, and lets them go."""
    peft = pytest.importorskip("peft")
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, device_map="cuda")
    lora = peft.get_peft_model(model, peft.LoraConfig(r=4, task_type="CAUSAL_LM"))
    lora.save_pretrained(tmp_path / "adapter")
    num_bytes = sum(tensor.nbytes for tensor in lora.parameters() if tensor.requires_grad)
    base = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, device_map="cuda")
    before = torch.cuda.memory_allocated()
    with births_on(offline_gpu) as births:
        loaded = peft.PeftModel.from_pretrained(base, tmp_path / "adapter", is_trainable=True)

    assert num_bytes == sum(tensor.nbytes for tensor in loaded.parameters() if tensor.requires_grad)
    assert 2 * num_bytes <= sum(requested(births))
    assert num_bytes <= torch.cuda.memory_allocated() - before < 2 * num_bytes


# Weights and configurations that are not there.


def cache_config(cache, name, **options):
    """As after `hf download name config.json`."""
    directory = cache / f"models--{name.replace('/', '--')}"
    save_config(directory / "snapshots" / "abc", **options)
    (directory / "refs").mkdir()
    (directory / "refs" / "main").write_text("abc")


@pytest.mark.parametrize("options", [{"device_map": "cuda"}, {"dtype": torch.float16}, {"dtype": "auto"}], ids=str)
@pytest.mark.parametrize("config", [{}, {"dtype": None, "tie_word_embeddings": True}], ids=str)
def test_without_weights(offline_gpu, tmp_path, config, options):
    """The model comes from its configuration and takes what a checkpoint of its shapes takes; the report says so."""
    cache_config(tmp_path, "org/name", **config)
    with births_on(offline_gpu) as births:
        model = transformers.AutoModelForCausalLM.from_pretrained("org/name", cache_dir=tmp_path, **options)
    of_config = torch.bfloat16 if config.get("dtype", "") is not None else torch.float32
    dtype = options["dtype"] if options.get("dtype", "auto") != "auto" else of_config

    assert {dtype} == {tensor.dtype for tensor in model.parameters()}
    assert ["missing-weights"] == slugs(offline_gpu)
    assert "org/name" in offline_gpu.approximations.records()[0].what
    if "device_map" in options:
        assert births[0].requested_bytes == sum(tensor.nbytes for tensor in model.parameters())


def test_adapter_without_weights(offline_gpu, checkpoint, tmp_path):
    """An adapter whose configuration is cached keeps the weights that it is initialised with."""
    peft = pytest.importorskip("peft")
    directory = tmp_path / "models--org--adapter"
    peft.LoraConfig(r=4, task_type="CAUSAL_LM", target_modules=["q_proj"]).save_pretrained(directory / "snapshots/abc")
    (directory / "refs").mkdir()
    (directory / "refs" / "main").write_text("abc")
    base = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, device_map="cuda")
    model = peft.PeftModel.from_pretrained(base, "org/adapter", cache_dir=str(tmp_path))

    assert {"cuda:0"} == {str(tensor.device) for name, tensor in model.named_parameters() if "lora" in name}
    assert "org/adapter" in offline_gpu.approximations.records()[0].what


def test_directory_without_weights(offline_gpu, tmp_path):
    """The person's own directory without a checkpoint is the script's error."""
    save_config(tmp_path / "mine")
    with pytest.raises(OSError, match="no file named"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "mine")


@pytest.mark.parametrize(
    ("auto_class", "cached", "command"),
    [
        ("AutoModelForCausalLM", [], "hf download org/name config.json"),
        ("AutoImageProcessor", ["org/name"], "hf download org/name preprocessor_config.json"),
        ("AutoFeatureExtractor", ["org/name"], "hf download org/name preprocessor_config.json"),
        ("AutoTokenizer", [], r'hf download org/name --include "\*.json"'),
        ("AutoTokenizer", ["org/name"], r'hf download org/name --include "\*.json"'),
    ],
)
def test_without_configuration(offline_gpu, tmp_path, auto_class, cached, command):
    """What cannot be done without is named with the command that gets it."""
    for name in cached:
        cache_config(tmp_path, name)
    with pytest.raises(PeaksightError, match=command):
        getattr(transformers, auto_class).from_pretrained("org/name", cache_dir=tmp_path)


def test_libraries_may_do_without_a_configuration(offline_gpu, tmp_path):
    """Code that has another way when a configuration is not there takes it."""
    with pytest.raises(OSError, match="not in the local cache"):
        transformers.AutoConfig.from_pretrained("org/name", cache_dir=tmp_path)


def test_torchvision(offline_gpu):
    """`weights="DEFAULT"` is done without, for a model and for a backbone."""
    torchvision = pytest.importorskip("torchvision")
    model = torchvision.models.resnet18(weights="DEFAULT").cuda()
    torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights_backbone="DEFAULT", num_classes=3)
    (missing,) = offline_gpu.approximations.records()

    assert model.fc.weight.is_cuda
    assert "resnet18" in missing.what and "mobilenet_v3" in missing.what


def test_timm(offline_gpu):
    """`pretrained=True` too, with another head and other channels."""
    timm = pytest.importorskip("timm")
    timm.create_model("vit_tiny_patch16_224", pretrained=True, num_classes=10)
    timm.create_model("resnet18", pretrained=True, in_chans=1)

    assert ["missing-weights"] == slugs(offline_gpu)


def test_state_dict_of_a_url(offline_gpu):
    """A checkpoint of one's own address can be taken apart as usual and is loaded without effect."""
    checkpoint = torch.hub.load_state_dict_from_url("https://example.com/model.pth")["model"]
    del checkpoint["head.weight"]
    checkpoint.pop("head.bias")
    model = nn.Linear(2, 2)

    assert ["weight", "bias"] == model.load_state_dict(checkpoint).missing_keys
    assert "model.pth" in offline_gpu.approximations.records()[0].what


def test_libraries_are_as_before():
    """After the run transformers asks the hub again."""
    from transformers import modeling_utils

    before = dict(vars(modeling_utils)), dict(vars(modeling_utils.PreTrainedModel))
    with h100():
        assert before[0] != vars(modeling_utils)

    assert before == (vars(modeling_utils), dict(vars(modeling_utils.PreTrainedModel)))
