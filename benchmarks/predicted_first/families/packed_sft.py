import os

os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
from dataclasses import dataclass
import torch
from transformers import Gemma3TextConfig, Gemma3ForCausalLM, DataCollatorWithFlattening
from torch.utils.data import Dataset, DataLoader


@dataclass
class Cfg:
    lr: float = 1e-5
    bs: int = 4
    accum: int = 2
    steps: int = 8
    compile: bool = False


class DS(Dataset):
    def __len__(s):
        return 256

    def __getitem__(s, i):
        n = 100 + (i * 37) % 900
        ids = [(i * 31 + j * 7) % 262000 for j in range(n)]
        return {"input_ids": ids, "labels": ids}


c = Cfg()
torch.manual_seed(0)
cfg = Gemma3TextConfig(
    vocab_size=262144,
    hidden_size=640,
    intermediate_size=2048,
    num_hidden_layers=18,
    num_attention_heads=4,
    num_key_value_heads=1,
    head_dim=256,
    sliding_window=512,
)
model = Gemma3ForCausalLM(cfg).to(dtype=torch.bfloat16, device="cuda")
opt = torch.optim.AdamW(model.parameters(), lr=c.lr, fused=True)
dl = DataLoader(DS(), batch_size=c.bs, shuffle=True, collate_fn=DataCollatorWithFlattening())
it = iter(dl)
model.train()
for s in range(c.steps):
    for m in range(c.accum):
        b = {k: v.cuda() for k, v in next(it).items() if torch.is_tensor(v)}
        out = model(**b)
        (out.loss / c.accum).backward()
    gn = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    opt.zero_grad()
    if s % 2 == 0:
        print(f"step {s} loss {out.loss.item():.3f} gn {gn:.3f}")
