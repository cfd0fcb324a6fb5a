import torch
from transformers import DebertaV2Config, DebertaV2ForTokenClassification, get_linear_schedule_with_warmup, set_seed
from torch.utils.data import DataLoader
from tqdm.auto import tqdm

set_seed(3)
cfg = DebertaV2Config(
    vocab_size=128100,
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    intermediate_size=3072,
    relative_attention=True,
    pos_att_type=["p2c", "c2p"],
    position_buckets=256,
    norm_rel_ebd="layer_norm",
    share_att_key=True,
    position_biased_input=False,
    max_relative_positions=-1,
    num_labels=9,
    type_vocab_size=0,
)
model = DebertaV2ForTokenClassification(cfg).to("cuda")


def batch(n):
    L = torch.randint(60, 256, (n,))
    M = int(L.max())
    ids = torch.zeros(n, M, dtype=torch.long)
    am = torch.zeros_like(ids)
    lab = torch.full((n, M), -100)
    for i, l in enumerate(L):
        ids[i, :l] = torch.randint(5, 128000, (int(l),))
        am[i, :l] = 1
        lab[i, :l] = torch.randint(0, 9, (int(l),))
    return dict(input_ids=ids, attention_mask=am, labels=lab)


opt = torch.optim.AdamW(model.parameters(), lr=3e-5)
sch = get_linear_schedule_with_warmup(opt, 5, 50)
bar = tqdm(range(8))
for s in bar:
    b = {k: v.to("cuda") for k, v in batch(16).items()}
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = model(**b)
    out.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sch.step()
    opt.zero_grad()
    bar.set_postfix(loss=out.loss.item())
