"""Tags for words: characters by a packed LSTM, words by another, a CRF whose sums run step by step, Viterbi, Adadelta."""

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

TAGS, WORDS, CHARS, BATCH = 96, 50_000, 90, 512
START, STOP = TAGS - 2, TAGS - 1

g = torch.Generator().manual_seed(11)


def sentences(n):
    lengths = torch.randint(8, 64, (n,), generator=g).sort(descending=True).values
    words = pad_sequence([torch.randint(1, WORDS, (int(k),), generator=g) for k in lengths], batch_first=True)
    tags = pad_sequence([torch.randint(0, TAGS - 2, (int(k),), generator=g) for k in lengths], batch_first=True)
    widths = torch.randint(1, 14, (n, words.size(1)), generator=g)
    chars = torch.randint(1, CHARS, (n, words.size(1), 14), generator=g)
    return words, chars, widths, tags, lengths


def log_sum_exp(x, dim):
    top, _ = x.max(dim)
    return top + torch.log(torch.sum(torch.exp(x - top.unsqueeze(dim)), dim))


class CRF(nn.Module):
    def __init__(self):
        super().__init__()
        self.trans = nn.Parameter(torch.randn(TAGS, TAGS))
        self.trans.data[START, :] = -10000.0
        self.trans.data[:, STOP] = -10000.0

    def forward_score(self, feats, mask):
        b, t, _ = feats.shape
        score = torch.full((b, TAGS), -10000.0, device=feats.device)
        score[:, START] = 0.0
        trans = self.trans.unsqueeze(0)
        for i in range(t):
            m = mask[:, i].unsqueeze(1)
            new = log_sum_exp(score.unsqueeze(1) + feats[:, i].unsqueeze(2) + trans, 2)
            score = new * m + score * (1 - m)
        return log_sum_exp(score + self.trans[STOP], 1)

    def gold_score(self, feats, tags, mask, lengths):
        b, t, _ = feats.shape
        emit = feats.gather(2, tags.unsqueeze(2)).squeeze(2)
        before = torch.cat([torch.full((b, 1), START, dtype=torch.long, device=tags.device), tags[:, :-1]], 1)
        score = ((emit + self.trans[tags, before]) * mask).sum(1)
        last = tags.gather(1, (lengths - 1).unsqueeze(1)).squeeze(1)
        return score + self.trans[STOP, last]

    def decode(self, feats, mask):
        score = torch.full((feats.size(0), TAGS), -10000.0, device=feats.device)
        score[:, START] = 0.0
        pointers = []
        for i in range(feats.size(1)):
            best, at = (score.unsqueeze(1) + self.trans).max(2)
            m = mask[:, i].unsqueeze(1)
            score = torch.where(m.bool(), best + feats[:, i], score)
            pointers.append(at)
        tag = (score + self.trans[STOP]).argmax(1, keepdim=True)
        path = [tag]
        for at in reversed(pointers[1:]):
            tag = at.gather(1, tag)
            path.append(tag)
        return torch.cat(path[::-1], 1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.chars = nn.Embedding(WORDS, 300, padding_idx=0), nn.Embedding(CHARS, 50, padding_idx=0)
        self.char_lstm = nn.LSTM(50, 64, bidirectional=True, batch_first=True)
        self.lstm = nn.LSTM(300 + 128, 384, num_layers=2, bidirectional=True, batch_first=True, dropout=0.5)
        self.drop, self.emit, self.crf = nn.Dropout(0.5), nn.Linear(768, TAGS), CRF()

    def features(self, words, chars, widths, lengths):
        b, t, w = chars.shape
        packed = pack_padded_sequence(
            self.chars(chars.view(b * t, w)), widths.view(-1), batch_first=True, enforce_sorted=False
        )
        _, (h, _) = self.char_lstm(packed)
        x = torch.cat([self.words(words), h.transpose(0, 1).reshape(b, t, -1)], 2)
        x = pack_padded_sequence(self.drop(x), lengths, batch_first=True)
        x, _ = pad_packed_sequence(self.lstm(x)[0], batch_first=True)
        return self.emit(self.drop(x))

    def loss(self, words, chars, widths, tags, lengths):
        feats = self.features(words, chars, widths, lengths)
        mask = (words > 0).float()
        gold = self.crf.gold_score(feats, tags, mask, lengths.to(words.device))
        return (self.crf.forward_score(feats, mask) - gold).mean()


device = torch.device("cuda")
batches = [sentences(BATCH) for _ in range(4)]
model = Tagger().to(device)
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
for words, chars, widths, tags, lengths in batches[:3]:
    model.train()
    optimizer.zero_grad()
    loss = model.loss(words.to(device), chars.to(device), widths, tags.to(device), lengths)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    print(loss.item(), flush=True)
model.eval()
with torch.no_grad():
    words, chars, widths, tags, lengths = batches[3]
    words, tags = words.to(device), tags.to(device)
    mask = (words > 0).float()
    path = model.crf.decode(model.features(words, chars.to(device), widths, lengths), mask)
    hits = torch.masked_select(path == tags, mask.bool())
print(hits.float().mean().item())
