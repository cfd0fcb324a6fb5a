import torch, torch.nn as nn, torch.nn.functional as F
from contextlib import nullcontext
from transformers import CLIPConfig, CLIPModel
from torch.utils.checkpoint import get_device_states, set_device_states

torch.manual_seed(0)
m = CLIPModel(CLIPConfig()).cuda()
opt = torch.optim.AdamW(m.parameters(), 1e-4, fused=True)
B, C = 256, 32


class Rng:
    def __init__(s, *t):
        s.c = torch.get_rng_state()
        s.d, s.g = get_device_states(*t)

    def __enter__(s):
        s.f = torch.random.fork_rng(devices=s.d)
        s.f.__enter__()
        torch.set_rng_state(s.c)
        set_device_states(s.d, s.g)

    def __exit__(s, *e):
        s.f.__exit__(*e)


def enc(px, ids):
    v = m.get_image_features(pixel_values=px)
    t = m.get_text_features(input_ids=ids)
    f = lambda o: o.pooler_output if hasattr(o, "pooler_output") else o
    return F.normalize(f(v), dim=-1), F.normalize(f(t), dim=-1)


for step in range(3):
    px, ids = torch.randn(B, 3, 224, 224), torch.randint(0, 49000, (B, 77))
    ids[:, -1] = 49407
    V, T, st = [], [], []
    for a, b in zip(px.split(C), ids.split(C)):
        a, b = a.cuda(), b.cuda()
        st.append(Rng(a, b))
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
            v, t = enc(a, b)
            V.append(v.float())
            T.append(t.float())
    V, T = torch.cat(V).requires_grad_(), torch.cat(T).requires_grad_()
    lg = m.logit_scale.exp() * V @ T.t()
    y = torch.arange(B, device="cuda")
    loss = (F.cross_entropy(lg, y) + F.cross_entropy(lg.t(), y)) / 2
    loss.backward()
    gv, gt = V.grad.split(C), T.grad.split(C)
    for i, (a, b) in enumerate(zip(px.split(C), ids.split(C))):
        with st[i], torch.autocast("cuda", dtype=torch.bfloat16):
            v, t = enc(a.cuda(), b.cuda())
        s = (v.float() * gv[i]).sum() + (t.float() * gt[i]).sum()
        s.backward()
    opt.step()
    opt.zero_grad()
    m.logit_scale.data.clamp_(0, 4.6)
    print(step, loss.item())
