"""Retrieval by tokens (ColBERT): a large batch through a gradient cache, two passes of pieces with their random states."""

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import get_device_states, set_device_states
from transformers import BertConfig, BertModel

BATCH, PIECE, QUERY, DOCUMENT = 128, 16, 32, 180
torch.manual_seed(0)
encoder = BertModel(BertConfig(), add_pooling_layer=False).cuda().train()
project = torch.nn.Linear(768, 128, bias=False).cuda()
optimizer = torch.optim.AdamW([*encoder.parameters(), *project.parameters()], 3e-6)


def encode(ids):
    with torch.autocast("cuda", torch.bfloat16):
        hidden = encoder(ids, attention_mask=(ids > 0).long()).last_hidden_state
        return F.normalize(project(hidden).float(), dim=-1) * (ids > 0)[..., None]


class Replayed:
    def __init__(self, tensor):
        self.host, (self.devices, self.states) = torch.get_rng_state(), get_device_states(tensor)

    def __enter__(self):
        self.fork = torch.random.fork_rng(devices=self.devices, enabled=True)
        self.fork.__enter__()
        torch.set_rng_state(self.host)
        set_device_states(self.devices, self.states)

    def __exit__(self, *reason):
        self.fork.__exit__(*reason)


for _ in range(3):
    queries = torch.randint(1, 30522, (BATCH, QUERY)).cuda()
    documents = torch.randint(1, 30522, (2 * BATCH, DOCUMENT)).cuda()
    pieces, states, found = [*queries.split(PIECE), *documents.split(PIECE)], [], []
    with torch.no_grad():
        for piece in pieces:
            states.append(Replayed(piece))
            found.append(encode(piece))
    leaves = [each.detach().requires_grad_() for each in found]
    q, d = torch.cat(leaves[: BATCH // PIECE]), torch.cat(leaves[BATCH // PIECE :])
    scores = torch.cat([torch.einsum("qid,njd->qnij", part, d).max(-1)[0].sum(-1) for part in q.split(8)])
    loss = F.cross_entropy(scores / 0.05, torch.arange(BATCH, device="cuda"))
    loss.backward()
    for piece, state, leaf in zip(pieces, states, leaves, strict=True):
        with state:
            again = encode(piece)
        (again * leaf.grad).sum().backward()
    torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
