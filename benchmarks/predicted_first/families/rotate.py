"""Knowledge graphs by rotations (RotatE): large tables of entities, negatives weighed by themselves, ranks filtered at the end."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

ENTITIES, RELATIONS, TRIPLES = 250_000, 822, 400_000
DIM, GAMMA, EPSILON = 500, 12.0, 2.0
BATCH, NEGATIVES, TEST_BATCH = 1024, 256, 4


class KGEModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(torch.Tensor([GAMMA]), requires_grad=False)
        self.embedding_range = nn.Parameter(torch.Tensor([(GAMMA + EPSILON) / DIM]), requires_grad=False)
        self.entity_embedding = nn.Parameter(torch.zeros(ENTITIES, 2 * DIM))
        nn.init.uniform_(self.entity_embedding, -self.embedding_range.item(), self.embedding_range.item())
        self.relation_embedding = nn.Parameter(torch.zeros(RELATIONS, DIM))
        nn.init.uniform_(self.relation_embedding, -self.embedding_range.item(), self.embedding_range.item())

    def forward(self, sample, mode="single"):
        if mode == "single":
            head = torch.index_select(self.entity_embedding, 0, sample[:, 0]).unsqueeze(1)
            relation = torch.index_select(self.relation_embedding, 0, sample[:, 1]).unsqueeze(1)
            tail = torch.index_select(self.entity_embedding, 0, sample[:, 2]).unsqueeze(1)
            return self.score(head, relation, tail, mode)
        positive, negative = sample
        b, n = negative.size(0), negative.size(1)
        relation = torch.index_select(self.relation_embedding, 0, positive[:, 1]).unsqueeze(1)
        many = torch.index_select(self.entity_embedding, 0, negative.view(-1)).view(b, n, -1)
        if mode == "head-batch":
            tail = torch.index_select(self.entity_embedding, 0, positive[:, 2]).unsqueeze(1)
            return self.score(many, relation, tail, mode)
        head = torch.index_select(self.entity_embedding, 0, positive[:, 0]).unsqueeze(1)
        return self.score(head, relation, many, mode)

    def score(self, head, relation, tail, mode):
        re_head, im_head = torch.chunk(head, 2, dim=2)
        re_tail, im_tail = torch.chunk(tail, 2, dim=2)
        phase = relation / (self.embedding_range.item() / math.pi)
        re_relation, im_relation = torch.cos(phase), torch.sin(phase)
        if mode == "head-batch":
            re_score = re_relation * re_tail + im_relation * im_tail - re_head
            im_score = re_relation * im_tail - im_relation * re_tail - im_head
        else:
            re_score = re_head * re_relation - im_head * im_relation - re_tail
            im_score = re_head * im_relation + im_head * re_relation - im_tail
        score = torch.stack([re_score, im_score], dim=0).norm(dim=0)
        return self.gamma.item() - score.sum(dim=2)


def train_step(model, optimizer, positive, negative, weight, mode):
    model.train()
    optimizer.zero_grad()
    negative_score = model((positive, negative), mode=mode)
    negative_score = (F.softmax(negative_score * 1.0, dim=1).detach() * F.logsigmoid(-negative_score)).sum(dim=1)
    positive_score = F.logsigmoid(model(positive)).squeeze(dim=1)
    loss = -(weight * positive_score).sum() / weight.sum() / 2 - (weight * negative_score).sum() / weight.sum() / 2
    loss = loss + 1e-7 * (model.entity_embedding.norm(p=3) ** 3 + model.relation_embedding.norm(p=3).norm(p=3) ** 3)
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test(model, triples, known):
    model.eval()
    ranks = []
    everything = torch.arange(4096, device="cuda")
    for positive in triples.split(TEST_BATCH):
        candidates = everything.unsqueeze(0).repeat(positive.size(0), 1)
        candidates[:, 0] = positive[:, 2]
        score = model((positive, candidates), "tail-batch")
        score += known[: positive.size(0), :4096] * -10.0
        order = torch.argsort(score, dim=1, descending=True)
        for i in range(positive.size(0)):
            ranks.append((order[i] == 0).nonzero().item() + 1)
    return sum(1.0 / r for r in ranks) / len(ranks)


torch.manual_seed(0)
data = torch.stack([torch.randint(0, n, (TRIPLES,)) for n in (ENTITIES, RELATIONS, ENTITIES)], 1)
count = torch.bincount(data[:, 0], minlength=ENTITIES) + 4
model = KGEModel().cuda()
print("parameters", sum(p.numel() for p in model.parameters() if p.requires_grad))
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=5e-5)
for step in range(4):
    positive = data[torch.randint(0, TRIPLES, (BATCH,))]
    negative = torch.randint(0, ENTITIES, (BATCH, NEGATIVES)).cuda()
    weight = torch.sqrt(1.0 / count[positive[:, 0]].float()).cuda()
    mode = "head-batch" if step % 2 == 0 else "tail-batch"
    print(step, mode, train_step(model, optimizer, positive.cuda(), negative, weight, mode), flush=True)
    if step == 2:  # the rate falls once, and Adam begins anew
        optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=5e-6)
print("MRR", test(model, data[:16].cuda(), (torch.rand(TEST_BATCH, ENTITIES) < 1e-4).float().cuda()))
