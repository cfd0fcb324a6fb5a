import torch, torch.nn.functional as F, copy
from transformers import PhiConfig, PhiForSequenceClassification, OlmoConfig, OlmoForCausalLM

torch.manual_seed(0)
rm = (
    PhiForSequenceClassification(
        PhiConfig(
            hidden_size=1024,
            intermediate_size=4096,
            num_hidden_layers=12,
            num_attention_heads=16,
            num_labels=1,
            pad_token_id=0,
        )
    )
    .cuda()
    .bfloat16()
)
opt = torch.optim.SGD(rm.parameters(), 1e-4, momentum=0.9, nesterov=True)


def pair(n, L):
    l = torch.randint(L // 2, L + 1, (n,))
    ids = torch.randint(1, 50000, (n, L))
    m = (torch.arange(L)[None] < l[:, None]).long()
    return ids * m, m


for i in range(3):
    (a, am), (b, bm) = pair(4, 512), pair(4, 512)
    ids, m = torch.cat([a, b]).cuda(), torch.cat([am, bm]).cuda()
    s = rm(input_ids=ids, attention_mask=m).logits.squeeze(-1).float()
    loss = -F.logsigmoid(s[:4] - s[4:]).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    acc = (s[:4] > s[4:]).float().mean().item()
    print("rm", i, loss.item(), acc)
del opt, s, loss
rm.eval()
torch.cuda.empty_cache()
policy = (
    OlmoForCausalLM(OlmoConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=12, num_attention_heads=16))
    .cuda()
    .bfloat16()
)
ref = copy.deepcopy(policy).eval().requires_grad_(False)
opt = torch.optim.AdamW(policy.parameters(), 5e-7)


def lp(m, ids, mask):
    lo = m(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1]
    y = ids[:, 1:]
    return (torch.gather(lo.float().log_softmax(-1), 2, y[..., None]).squeeze(-1) * mask[:, 1:]).sum(-1)


for i in range(4):
    (a, am), (b, bm) = pair(4, 768), pair(4, 768)
    ids, m = torch.cat([a, b]).cuda(), torch.cat([am, bm]).cuda()
    p = lp(policy, ids, m)
    with torch.no_grad():
        r = lp(ref, ids, m)
        score = rm(input_ids=ids.clamp(max=50000), attention_mask=m).logits
    loss = -F.logsigmoid(0.1 * ((p[:4] - r[:4]) - (p[4:] - r[4:]))).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
    print("dpo", i, loss.item(), score.mean().item())
