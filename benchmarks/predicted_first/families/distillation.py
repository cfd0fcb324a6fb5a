"""A small BERT taught by a large one: its logits and, through projections, hidden states of every other layer."""

import torch
import torch.nn.functional as F
from torch import nn
from transformers import BertConfig, BertForMaskedLM, get_linear_schedule_with_warmup

torch.manual_seed(0)
teacher = BertForMaskedLM(BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)).cuda().eval()
student = BertForMaskedLM(BertConfig(hidden_size=384, num_hidden_layers=12, num_attention_heads=12, intermediate_size=1536)).cuda()
project = nn.ModuleList(nn.Linear(384, 1024) for _ in range(12)).cuda()
optimizer = torch.optim.AdamW([*student.parameters(), *project.parameters()], 5e-4)
schedule = get_linear_schedule_with_warmup(optimizer, 10, 100)

for _ in range(4):
    ids = torch.randint(0, 30522, (32, 256)).cuda()
    mask = (torch.arange(256)[None] < torch.full((32, 1), 200)).long().cuda()
    labels = ids.masked_fill(torch.rand(ids.shape, device="cuda") > 0.15, -100)
    with torch.no_grad():
        taught = teacher(ids, attention_mask=mask, output_hidden_states=True)
    learnt = student(ids, attention_mask=mask, labels=labels, output_hidden_states=True)
    soft = F.kl_div(F.log_softmax(learnt.logits / 2, -1), F.softmax(taught.logits / 2, -1), reduction="batchmean") * 4 / 256
    hidden = sum(F.mse_loss(p(a), b) for p, a, b in zip(project, learnt.hidden_states[1:], taught.hidden_states[2::2], strict=True))
    loss = learnt.loss + soft + hidden
    loss.backward()
    nn.utils.clip_grad_norm_(student.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
