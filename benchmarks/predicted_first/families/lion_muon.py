import torch, torch.nn as nn, torch.nn.functional as F, math
from transformers import MistralConfig, MistralForCausalLM


class Lion(torch.optim.Optimizer):
    def __init__(s, p, lr=1e-4, betas=(0.9, 0.99), wd=0.0):
        super().__init__(p, dict(lr=lr, betas=betas, wd=wd))

    @torch.no_grad()
    def step(s, closure=None):
        for g in s.param_groups:
            for p in g["params"]:
                if p.grad is None:
                    continue
                st = s.state[p]
                if not st:
                    st["m"] = torch.zeros_like(p)
                m = st["m"]
                p.mul_(1 - g["lr"] * g["wd"])
                u = m.clone().mul_(g["betas"][0]).add(p.grad, alpha=1 - g["betas"][0]).sign_()
                p.add_(u, alpha=-g["lr"])
                m.lerp_(p.grad, 1 - g["betas"][1])


class Muon(torch.optim.Optimizer):
    def __init__(s, p, lr=0.02, mom=0.95):
        super().__init__(p, dict(lr=lr, mom=mom))

    @torch.no_grad()
    def step(s):
        for g in s.param_groups:
            for p in g["params"]:
                st = s.state[p]
                b = st.setdefault("b", torch.zeros_like(p))
                b.lerp_(p.grad, 1 - g["mom"])
                x = p.grad.lerp(b, g["mom"]).bfloat16()
                T = x.size(0) > x.size(1)
                x = x.T if T else x
                x = x / (x.norm() + 1e-7)
                for _ in range(5):
                    a = x @ x.T
                    q = -4.775 * a + 2.0315 * a @ a
                    x = 3.4445 * x + q @ x
                p.add_((x.T if T else x).to(p.dtype), alpha=-g["lr"] * max(1, p.size(0) / p.size(1)) ** 0.5)


m = MistralForCausalLM(
    MistralConfig(
        vocab_size=32000,
        hidden_size=1024,
        intermediate_size=3584,
        num_hidden_layers=12,
        num_attention_heads=16,
        num_key_value_heads=4,
        sliding_window=512,
    )
).cuda()
mat = [p for n, p in m.named_parameters() if p.ndim == 2 and "embed" not in n and "lm_head" not in n]
ids = {id(p) for p in mat}
oth = [p for p in m.parameters() if id(p) not in ids]
opts = [Muon(mat), Lion(oth, wd=0.1)]
for i in range(4):
    for mb in range(2):
        x = torch.randint(0, 32000, (4, 1024), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            l = m(input_ids=x, labels=x).loss / 2
        l.backward()
    for o in opts:
        o.step()
    for o in opts:
        o.zero_grad(set_to_none=True)
    print(i, l.item())
