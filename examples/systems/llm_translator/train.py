"""Train a bridge that turns what Mistral reads into soft tokens for Llama, both frozen, on ranks of DDP.

    torchrun --nproc-per-node 4 train.py --variant note

Weights are random and texts made up, in the shapes of Mistral-7B-v0.3, Llama-3.1-8B and GSM8K with eight examples.
`--variant` says how memory is used: `before` as the authors had it, `note` with the fixes of their note, `fixed` with
those that help. The other options take their defaults from it.
"""

import argparse
import os
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig

DEFAULTS = {  # samples of a batch, samples of it that are decoded, by which ranks, and the last step without
    "before": {"batch": 4, "decode_samples": 4, "decoders": "all", "decode_after": -1},
    "note": {"batch": 2, "decode_samples": 1, "decoders": "first", "decode_after": 200},
    "fixed": {"batch": 4, "decode_samples": 4, "decoders": "all", "decode_after": -1},
}
PARTS = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_key_value_heads": 8}
TINY = {"hidden_size": 128, "intermediate_size": 448, "num_hidden_layers": 6, "num_key_value_heads": 1}
TINY |= {"num_attention_heads": 4, "vocab_size": 8192}
SCALES = {
    "full": {
        "source": MistralConfig(**PARTS, vocab_size=32768, max_position_embeddings=32768),
        "target": LlamaConfig(**PARTS, vocab_size=128256, max_position_embeddings=131072),
        "bridge": {"width": 512, "depth": 6, "heads": 8},
        "tokens": {"soft": 2048, "prompt": 1467, "answer": 133},
        "dtype": torch.bfloat16,
    },
    "small": {
        "source": MistralConfig(**TINY),
        "target": LlamaConfig(**TINY),
        "bridge": {"width": 32, "depth": 2, "heads": 4},
        "tokens": {"soft": 128, "prompt": 92, "answer": 8},
        "dtype": torch.float32,
    },
}
IGNORED = -100

parser = argparse.ArgumentParser()
parser.add_argument("--variant", choices=DEFAULTS, default="note")
parser.add_argument("--scale", choices=SCALES, default="full")
parser.add_argument("--batch", type=int, help="samples of each rank")
parser.add_argument("--decode-samples", type=int, help="how many of them the decode supervision takes")
parser.add_argument(
    "--decoders", choices=["all", "first", "shared"], help="ranks that decode; shared: all those of rank 0"
)
parser.add_argument("--decode-after", type=int, help="no decode supervision up to this step")
parser.add_argument("--decode-every", type=int, default=100)
parser.add_argument("--decode-weight", type=float, default=0.1)
parser.add_argument("--decode-factor", type=float, help="times the weight; by default the world size for first, else 1")
# For certificates: what a pass that goes around DistributedDataParallel does to the training.
parser.add_argument("--bypass", choices=["nothing", "decode", "all"], default="nothing", help="passes not seen by DDP")
parser.add_argument("--warmup", type=int, default=200, help="steps of a rising learning rate without the baseline term")
parser.add_argument("--checkpointing", action="store_true", help="ask transformers to checkpoint the target model")
parser.add_argument("--steps", type=int, default=2000)
parser.add_argument("--lr", type=float, default=1e-4)


class Block(nn.Module):
    """A block of a diffusion transformer: attention and MLP, each shifted, scaled and gated by the condition."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.modulation = nn.Linear(width, 6 * width)
        self.qkv, self.attention_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = self.modulation(F.silu(condition))[:, None].chunk(
            6, dim=-1
        )
        x = x + gate * self.attention(F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift)
        return x + mlp_gate * self.mlp(F.layer_norm(x, x.shape[-1:]) * (1 + mlp_scale) + mlp_shift)

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in self.qkv(x).chunk(3, dim=-1))
        return self.attention_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Bridge(nn.Module):
    """From hidden states of the source to soft tokens of the target, by steps from noise along a velocity."""

    def __init__(self, source_size: int, target_size: int, width: int, depth: int, heads: int):
        super().__init__()
        self.inward, self.outward = nn.Linear(target_size, width), nn.Linear(width, target_size)
        self.align = nn.Linear(source_size, source_size, bias=False)
        self.condition = nn.Sequential(nn.Linear(source_size, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
        self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.later_gain = nn.Parameter(torch.ones(width))  # only steps after the first have it, so decoding alone

    def forward(self, source: torch.Tensor, noise: torch.Tensor, num_steps: int) -> torch.Tensor:
        """[samples, tokens, source_size] and [samples, soft, target_size] -> [samples, soft, target_size]."""
        condition = self.condition(self.align(source.mean(1)))
        soft = noise
        for step in range(num_steps):
            soft = soft + self.velocity(soft, condition, step, num_steps) / num_steps
        return soft

    def velocity(self, soft: torch.Tensor, condition: torch.Tensor, step: int, num_steps: int) -> torch.Tensor:
        x = self.inward(soft)
        if step:
            x = x * self.later_gain
        waves = torch.arange(x.shape[-1], device=x.device) * (0.1 + step / num_steps)
        condition = condition + self.time(waves.sin().to(x.dtype))
        for block in self.blocks:
            x = block(x, condition)
        return self.outward(F.layer_norm(x, x.shape[-1:]))


def make_samples(step: int, rank: int, count: int, scale: dict, device: torch.device) -> dict[str, torch.Tensor]:
    """Made-up questions in the tokens of both models, answers of several lengths, and noise, by step and rank."""
    torch.manual_seed(10_000 * step + rank)
    tokens, classes = scale["tokens"], scale["target"].vocab_size
    answer = torch.randint(classes, (count, tokens["answer"]))
    lengths = torch.randint(tokens["answer"] // 2, tokens["answer"] + 1, (count, 1))
    labels = answer.masked_fill(torch.arange(tokens["answer"]) >= lengths, IGNORED)
    samples = {
        "source": torch.randint(scale["source"].vocab_size, (count, tokens["prompt"])),
        "prompt": torch.randint(classes, (count, tokens["prompt"])),
        "answer": answer,
        "mask": (labels != IGNORED).long(),
        "labels": labels,
    }
    samples = {name: each.to(device) for name, each in samples.items()}
    shape = (count, tokens["soft"], scale["target"].hidden_size)
    return samples | {"noise": torch.randn(shape, device=device, dtype=scale["dtype"])}


def main() -> None:
    args = parser.parse_args()
    for name, default in DEFAULTS[args.variant].items():
        if getattr(args, name) is None:
            setattr(args, name, default)
    scale, lean = SCALES[args.scale], args.variant == "fixed"
    on_gpu = torch.cuda.is_available()
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if on_gpu else "gloo")
    else:
        dist.init_process_group("nccl" if on_gpu else "gloo", store=dist.HashStore(), rank=0, world_size=1)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)

    torch.manual_seed(0)
    with device:
        source_model = AutoModelForCausalLM.from_config(scale["source"], dtype=scale["dtype"])
        target_model = AutoModelForCausalLM.from_config(scale["target"], dtype=scale["dtype"])
        sizes = scale["source"].hidden_size, scale["target"].hidden_size
        bridge = Bridge(*sizes, **scale["bridge"]).to(scale["dtype"])
    for model in (source_model, target_model):
        model.requires_grad_(False).eval()
    if args.checkpointing or lean:
        target_model.gradient_checkpointing_enable()
    if lean:
        target_model.train()  # it has no dropout; in eval() nothing is checkpointed
    embed = target_model.get_input_embeddings()
    bridge = DistributedDataParallel(bridge, device_ids=[device] if on_gpu else None, find_unused_parameters=True)
    optimizer = torch.optim.AdamW(bridge.parameters(), lr=args.lr, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: min(1.0, (done + 1) / max(1, args.warmup)))
    factor = args.decode_factor or (world_size if args.decoders == "first" else 1)

    def read(samples):
        """What the source model makes of the questions; all that it can return, unless lean."""
        with torch.no_grad():
            if lean:
                return source_model.model(samples["source"], use_cache=False).last_hidden_state, None
            out = source_model(samples["source"], output_hidden_states=True)
            return out.hidden_states[-1], out

    def run_target(samples, text=None, embeds=None):
        """The target's outputs with the logits that predict the answers, alone if lean."""
        length = (text if embeds is None else embeds).shape[1]
        padded = samples["mask"].shape[1]
        mask = F.pad(samples["mask"], (length - padded, 0), value=1)
        inputs = {"input_ids": text, "inputs_embeds": embeds, "attention_mask": mask}
        if lean:
            hidden = target_model.model(**inputs, use_cache=False).last_hidden_state
            return SimpleNamespace(answer_logits=target_model.lm_head(hidden[:, -padded - 1 : -1]).float())
        out = target_model(**inputs)
        out.logits = out.logits.float()  # of all positions, as transformers did at the time
        out.answer_logits = out.logits[:, -padded - 1 : -1]
        return out

    def answer_loss(soft, texts, samples):
        """The target's outputs and its loss on the answers, behind soft tokens and other texts."""
        embeds = torch.cat([soft, *(embed(samples[text]) for text in texts)], dim=1)
        out, labels = run_target(samples, embeds=embeds), samples["labels"]
        if lean:
            out.loss = F.cross_entropy(out.answer_logits.flatten(0, 1), labels.flatten())
            return out
        labels = F.pad(labels, (embeds.shape[1] - labels.shape[1], 0), value=IGNORED)
        logits, labels = out.logits[:, :-1].contiguous(), labels[:, 1:].contiguous()
        out.loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return out

    def baseline_term(samples, logits):
        """How far the answers' logits are from those of the target that reads the question itself."""
        with torch.no_grad():
            out = run_target(samples, text=torch.cat([samples["prompt"], samples["answer"]], dim=1))
        log_probabilities = [F.log_softmax(each, dim=-1).flatten(0, 1) for each in (logits, out.answer_logits)]
        return F.kl_div(*log_probabilities, log_target=True, reduction="batchmean"), out

    def decode_loss(step):
        """The outputs and weighted loss of the answers behind soft tokens of four steps and the question."""
        owner = 0 if args.decoders == "shared" else rank
        samples = make_samples(step, owner, args.batch, scale, device)
        samples = {name: each[: args.decode_samples] for name, each in samples.items()}
        soft = (bridge if args.bypass == "nothing" else bridge.module)(read(samples)[0], samples["noise"], 4)
        out = answer_loss(soft, ("prompt", "answer"), samples)
        return args.decode_weight * factor * out.loss, out

    for step in range(args.steps):
        decoding = step > args.decode_after and step % args.decode_every == 0
        decoding = decoding and (rank == 0 or args.decoders != "first")
        if decoding and lean:
            with bridge.no_sync():
                decode_loss(step)[0].backward()

        samples = make_samples(step, rank, args.batch, scale, device)
        source = read(samples)
        soft = (bridge.module if args.bypass == "all" else bridge)(source[0], samples["noise"], 1)
        out = answer_loss(soft, ("answer",), samples)
        pooled = F.normalize(soft.mean(1), dim=-1) @ F.normalize(embed(samples["prompt"]).mean(1), dim=-1).T
        loss = out.loss + 0.05 * F.cross_entropy(pooled.float() / 0.07, torch.arange(len(pooled), device=device))
        if step > args.warmup:
            baseline = baseline_term(samples, out.answer_logits)
            loss = loss + 0.1 * baseline[0]
        if decoding and not lean:
            decoded = decode_loss(step)
            loss = loss + decoded[0]
        loss.backward()
        clip_grad_norm_(bridge.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
