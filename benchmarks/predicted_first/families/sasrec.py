"""Next items for sessions (SASRec): sampled softmax with corrected logits, ranks over every item, scores kept on the card."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ITEMS, MAXLEN, DIM, HEADS, LAYERS = 400_000, 200, 128, 2, 3
BATCH, SAMPLED, EVAL_USERS, EVAL_BATCH = 256, 2048, 1024, 256


class PointWiseFeedForward(nn.Module):
    def __init__(self, hidden, dropout):
        super().__init__()
        self.conv1 = nn.Conv1d(hidden, hidden, kernel_size=1)
        self.dropout1 = nn.Dropout(p=dropout)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv1d(hidden, hidden, kernel_size=1)
        self.dropout2 = nn.Dropout(p=dropout)

    def forward(self, inputs):
        outputs = self.dropout2(self.conv2(self.relu(self.dropout1(self.conv1(inputs.transpose(-1, -2))))))
        return outputs.transpose(-1, -2) + inputs


class SASRec(nn.Module):
    def __init__(self, dropout=0.2):
        super().__init__()
        self.item_emb = nn.Embedding(ITEMS + 1, DIM, padding_idx=0)
        self.pos_emb = nn.Embedding(MAXLEN + 1, DIM, padding_idx=0)
        self.emb_dropout = nn.Dropout(p=dropout)
        self.attention_layernorms = nn.ModuleList(nn.LayerNorm(DIM, eps=1e-8) for _ in range(LAYERS))
        self.attention_layers = nn.ModuleList(nn.MultiheadAttention(DIM, HEADS, dropout) for _ in range(LAYERS))
        self.forward_layernorms = nn.ModuleList(nn.LayerNorm(DIM, eps=1e-8) for _ in range(LAYERS))
        self.forward_layers = nn.ModuleList(PointWiseFeedForward(DIM, dropout) for _ in range(LAYERS))
        self.last_layernorm = nn.LayerNorm(DIM, eps=1e-8)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_normal_(p)
        self.item_emb.weight.data[0] = 0

    def log2feats(self, seqs):
        x = self.item_emb(seqs) * DIM**0.5
        position = torch.arange(1, seqs.shape[1] + 1, device=seqs.device).unsqueeze(0).repeat(seqs.shape[0], 1)
        x = self.emb_dropout(x + self.pos_emb(position * (seqs != 0)))
        timeline = (seqs == 0).unsqueeze(-1)
        x = x.masked_fill(timeline, 0.0)
        tl = x.shape[1]
        mask = ~torch.tril(torch.ones((tl, tl), dtype=torch.bool, device=seqs.device))
        for i in range(LAYERS):
            x = torch.transpose(x, 0, 1)
            q = self.attention_layernorms[i](x)
            y, _ = self.attention_layers[i](q, x, x, attn_mask=mask)
            x = torch.transpose(q + y, 0, 1)
            x = self.forward_layers[i](self.forward_layernorms[i](x))
            x = x.masked_fill(timeline, 0.0)
        return self.last_layernorm(x)

    def predict(self, seqs):
        return self.log2feats(seqs)[:, -1] @ self.item_emb.weight.t()


def sampled_softmax(feats, target, table, log_prob):
    """One set of negatives for the whole batch, drawn by how often items are seen; hits of the target are masked."""
    negative = torch.multinomial(log_prob.exp(), SAMPLED, replacement=True)
    true = (feats * table(target)).sum(-1, keepdim=True) - log_prob[target].unsqueeze(-1)
    false = feats @ table(negative).t() - log_prob[negative]
    false = false.masked_fill(target.unsqueeze(-1) == negative, -1e4)
    logits = torch.cat([true, false], dim=-1)
    return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=logits.device))


def make_batch(n):
    """Sessions end at the right, as they do in these data sets; the lengths are of all kinds."""
    length = torch.randint(10, MAXLEN, (n, 1))
    seq = (torch.rand(n, MAXLEN + 1) ** 3 * ITEMS).long() + 1
    seq[torch.arange(MAXLEN + 1).unsqueeze(0) < MAXLEN - length] = 0
    return seq[:, :-1], seq[:, 1:]


torch.manual_seed(0)
device = "cuda"
model = SASRec().to(device)
frequency = 1.0 / (torch.arange(ITEMS + 1, device=device).float() + 10)
frequency[0] = 1e-12
log_prob = torch.log(frequency / frequency.sum())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
for step in range(4):
    seq, pos = (t.to(device) for t in make_batch(BATCH))
    model.train()
    feats = model.log2feats(seq)
    optimizer.zero_grad()
    loss = sampled_softmax(feats.reshape(-1, DIM), pos.reshape(-1), model.item_emb, log_prob)
    for param in model.item_emb.parameters():
        loss += 1e-6 * torch.norm(param)
    loss.backward()
    optimizer.step()
    print(f"loss in iteration {step}: {loss.item()}", flush=True)

model.eval()
with torch.no_grad():
    scores, answers = [], []
    for start in range(0, EVAL_USERS, EVAL_BATCH):
        seq, pos = (t.to(device) for t in make_batch(EVAL_BATCH))
        score = model.predict(seq)
        score.scatter_(1, seq, -float("inf"))
        scores.append(score)
        answers.append(pos[:, -1])
    scores, answers = torch.cat(scores), torch.cat(answers)
    rank = (scores > scores.gather(1, answers.unsqueeze(1))).sum(1)
    top = scores.topk(20, dim=1).indices
    print("HR@20", (rank < 20).float().mean().item(), "coverage", top.unique().numel() / ITEMS)
