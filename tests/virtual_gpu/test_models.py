"""Models of real libraries train on the virtual GPU, at the sizes that arithmetic gives."""

import pytest
import torch
import torch.nn.functional as F

from peaksight.records import Role

from .cards import by_role, slugs

pytestmark = [pytest.mark.torch, pytest.mark.models]

transformers = pytest.importorskip("transformers")


def step(model, loss):
    """One step of AdamW."""
    optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
    loss.backward()
    optimizer.step()
    return optimizer


def check_sizes(gpu, model, optimizer):
    """Trained parameters have a gradient and two moments of their size."""
    trained = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)

    assert sum(p.numel() * p.element_size() for p in model.parameters()) == by_role(gpu, Role.PARAMETER)
    assert trained == by_role(gpu, Role.GRADIENT)
    assert 2 * trained == by_role(gpu, Role.OPTIMIZER_STATE)
    assert optimizer.state


def tokens(vocabulary, shape=(2, 32)):
    """Token ids on the card."""
    return torch.randint(0, vocabulary, shape).cuda()


CONFIGS = {
    "gpt2": lambda: transformers.GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=100),
    "llama": lambda: transformers.LlamaConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128,
        vocab_size=100,
    ),
    "qwen2": lambda: transformers.Qwen2Config(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128,
        vocab_size=100, tie_word_embeddings=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_causal_language_models(virtual_gpu, config, autocast):
    """A causal language model from a config, with labels, in single precision and under autocast."""
    model = transformers.AutoModelForCausalLM.from_config(config()).cuda()
    ids = tokens(100)
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        loss = model(input_ids=ids, labels=ids).loss
    optimizer = step(model, loss)

    check_sizes(virtual_gpu, model, optimizer)
    assert model.get_input_embeddings().weight.is_cuda


def test_padded_batches(virtual_gpu):
    """An encoder reads the attention mask of a padded batch, whose values are real."""
    config = transformers.BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
    model = transformers.AutoModelForSequenceClassification.from_config(config).cuda()
    mask = (torch.arange(32)[None] < torch.tensor([32, 20])[:, None]).long().cuda()
    out = model(input_ids=tokens(100), attention_mask=mask, labels=torch.zeros(2, dtype=torch.int64).cuda())
    optimizer = step(model, out.loss)

    check_sizes(virtual_gpu, model, optimizer)
    assert "values" not in slugs(virtual_gpu)


def test_encoder_decoder(virtual_gpu):
    """T5 with its additive position bias."""
    config = transformers.T5Config(
        d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=100, decoder_start_token_id=0
    )
    model = transformers.T5ForConditionalGeneration(config).cuda()
    optimizer = step(model, model(input_ids=tokens(100), labels=tokens(100)).loss)

    assert 2 * by_role(virtual_gpu, Role.GRADIENT) == by_role(virtual_gpu, Role.OPTIMIZER_STATE)
    assert optimizer.state


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_gradient_checkpointing(virtual_gpu, use_reentrant):
    """transformers' own gradient checkpointing recomputes each layer."""
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS["llama"]()).cuda().train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": use_reentrant})
    model.enable_input_require_grads()
    ids = tokens(100)
    optimizer = step(model, model(input_ids=ids, labels=ids).loss)

    check_sizes(virtual_gpu, model, optimizer)


def test_seven_billion_parameters(virtual_gpu):
    """A 7B Llama in bfloat16 takes its 13.5 GB of the card and nothing of the host."""
    config = transformers.LlamaConfig()  # the defaults are those of 7B
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).cuda()
    block = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096

    assert 2 * (32 * block + 2 * 32000 * 4096 + 4096) == by_role(virtual_gpu, Role.PARAMETER)
    assert torch.bfloat16 == model.dtype


def test_timm(virtual_gpu):
    """A vision transformer of timm in channels last, with its own loss."""
    timm = pytest.importorskip("timm")
    model = timm.create_model("vit_tiny_patch16_224", num_classes=10, img_size=64).cuda()
    images = torch.randn(2, 3, 64, 64).to("cuda", memory_format=torch.channels_last)
    optimizer = step(model, F.cross_entropy(model(images), torch.zeros(2, dtype=torch.int64).cuda()))

    check_sizes(virtual_gpu, model, optimizer)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_torchvision(virtual_gpu, memory_format):
    """A ResNet of torchvision, whose batch statistics are buffers."""
    torchvision = pytest.importorskip("torchvision")
    model = torchvision.models.resnet18(num_classes=10).to("cuda", memory_format=memory_format)
    images = torch.randn(2, 3, 64, 64).cuda().to(memory_format=memory_format)
    optimizer = step(model, F.cross_entropy(model(images), torch.zeros(2, dtype=torch.int64).cuda()))
    buffers = sum(b.numel() * b.element_size() for b in model.buffers())

    check_sizes(virtual_gpu, model, optimizer)
    assert buffers == by_role(virtual_gpu, Role.BUFFER)
    assert ["convolution-workspace"] == sorted(slugs(virtual_gpu))


def test_lora(virtual_gpu):
    """peft's LoRA trains two small matrices for each target and freezes the rest."""
    peft = pytest.importorskip("peft")
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS["llama"]())
    model = peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"])).cuda()
    ids = tokens(100)
    optimizer = step(model, model(input_ids=ids, labels=ids).loss)
    # Queries go from 64 to 64, values from 64 to two heads of 16; two layers.
    rank_bytes = 2 * 4 * 4 * ((64 + 64) + (64 + 32))

    check_sizes(virtual_gpu, model, optimizer)
    assert rank_bytes == by_role(virtual_gpu, Role.GRADIENT)


def test_accelerate(virtual_gpu):
    """accelerate prepares model, optimizer and loader, and its scaler steps."""
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS["gpt2"]())
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.utils.data.DataLoader([tokens(100, (32,)).cpu() for _ in range(4)], batch_size=2)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    for ids in data:
        with accelerator.accumulate(model):
            accelerator.backward(model(input_ids=ids, labels=ids).loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    assert "cuda" == accelerator.device.type
    assert 2 == virtual_gpu.loop.step
