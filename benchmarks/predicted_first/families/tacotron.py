"""Tacotron 2 by hand: location-sensitive attention step by step, teacher forcing, Griffin-Lim of what came out."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

random.seed(3)
N_MELS, R = 80, 2


def make_batch(n=48):
    lengths = sorted((random.randint(90, 160) for _ in range(n)), reverse=True)
    frames = [random.randint(160, 400) // R * R for _ in range(n)]
    text = torch.zeros(n, max(lengths), dtype=torch.long)
    mels = torch.zeros(n, max(frames), N_MELS)
    gate = torch.zeros(n, max(frames))
    for i, (a, b) in enumerate(zip(lengths, frames)):
        text[i, :a] = torch.randint(1, 70, (a,))
        mels[i, :b] = torch.randn(b, N_MELS)
        gate[i, b - 1 :] = 1
    return text, torch.tensor(lengths), mels, gate, torch.tensor(frames)


def mask_of(lengths):
    ids = torch.arange(0, lengths.max().item(), device=lengths.device)
    return ids.unsqueeze(0) >= lengths.unsqueeze(1)


class Encoder(nn.Module):
    def __init__(self, d=512):
        super().__init__()
        self.embed = nn.Embedding(70, d, padding_idx=0)
        self.convs = nn.ModuleList(nn.Sequential(nn.Conv1d(d, d, 5, padding=2), nn.BatchNorm1d(d)) for _ in range(3))
        self.lstm = nn.LSTM(d, d // 2, batch_first=True, bidirectional=True)

    def forward(self, text, lengths):
        x = self.embed(text).transpose(1, 2)
        for conv in self.convs:
            x = F.dropout(F.relu(conv(x)), 0.5, self.training)
        x = pack_padded_sequence(x.transpose(1, 2), lengths.cpu(), batch_first=True)
        self.lstm.flatten_parameters()
        out, _ = self.lstm(x)
        return pad_packed_sequence(out, batch_first=True)[0]


class LocationAttention(nn.Module):
    def __init__(self, d=512, rnn=1024, a=128, filters=32):
        super().__init__()
        self.query = nn.Linear(rnn, a, bias=False)
        self.memory = nn.Linear(d, a, bias=False)
        self.v = nn.Linear(a, 1, bias=False)
        self.conv = nn.Conv1d(2, filters, 31, padding=15, bias=False)
        self.loc = nn.Linear(filters, a, bias=False)

    def forward(self, h, memory, processed, weights, mask):
        loc = self.loc(self.conv(weights).transpose(1, 2))
        energies = self.v(torch.tanh(self.query(h.unsqueeze(1)) + loc + processed)).squeeze(-1)
        energies.data.masked_fill_(mask, -float("inf"))
        w = F.softmax(energies, dim=1)
        return torch.bmm(w.unsqueeze(1), memory).squeeze(1), w


class Decoder(nn.Module):
    def __init__(self, d=512, rnn=1024):
        super().__init__()
        self.prenet = nn.ModuleList([nn.Linear(N_MELS, 256, bias=False), nn.Linear(256, 256, bias=False)])
        self.attention_rnn = nn.LSTMCell(256 + d, rnn)
        self.attention = LocationAttention(d, rnn)
        self.decoder_rnn = nn.LSTMCell(rnn + d, rnn)
        self.project = nn.Linear(rnn + d, N_MELS * R)
        self.gate = nn.Linear(rnn + d, 1)
        self.rnn = rnn

    def forward(self, memory, mels, mask):
        b, t, d = memory.shape
        h, c, dh, dc = (memory.new_zeros(b, self.rnn) for _ in range(4))
        w, total = memory.new_zeros(b, t), memory.new_zeros(b, t)
        context = memory.new_zeros(b, d)
        processed = self.attention.memory(memory)
        go = memory.new_zeros(1, b, N_MELS)
        frames = torch.cat([go, mels.transpose(0, 1)[R - 1 :: R]])
        for layer in self.prenet:
            frames = F.dropout(F.relu(layer(frames)), p=0.5, training=True)
        outs, gates, aligns = [], [], []
        while len(outs) < frames.size(0) - 1:
            h, c = self.attention_rnn(torch.cat((frames[len(outs)], context), -1), (h, c))
            h = F.dropout(h, 0.1, self.training)
            context, w = self.attention(h, memory, processed, torch.cat((w.unsqueeze(1), total.unsqueeze(1)), 1), mask)
            total += w
            dh, dc = self.decoder_rnn(torch.cat((h, context), -1), (dh, dc))
            dh = F.dropout(dh, 0.1, self.training)
            both = torch.cat((dh, context), 1)
            outs += [self.project(both)]
            gates += [self.gate(both)]
            aligns += [w]
        mel = torch.stack(outs).transpose(0, 1).contiguous().view(b, -1, N_MELS)
        return mel, torch.stack(gates).squeeze(-1).transpose(0, 1), torch.stack(aligns).transpose(0, 1)


class Tacotron(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()
        widths = [N_MELS, 512, 512, 512, 512, N_MELS]
        self.postnet = nn.ModuleList(
            nn.Sequential(nn.Conv1d(a, b, 5, padding=2), nn.BatchNorm1d(b)) for a, b in zip(widths[:-1], widths[1:])
        )

    def forward(self, text, lengths, mels):
        mel, gate, align = self.decoder(self.encoder(text, lengths), mels, mask_of(lengths))
        x = mel.transpose(1, 2)
        for i, layer in enumerate(self.postnet):
            x = F.dropout(torch.tanh(layer(x)) if i < 4 else layer(x), 0.5, self.training)
        return mel, mel + x.transpose(1, 2), gate, align


def griffin_lim(mag, n_fft=1024, hop=256, steps=20):
    window = torch.hann_window(n_fft, device=mag.device)
    angles = torch.exp(2j * torch.pi * torch.rand_like(mag))
    for _ in range(steps):
        wave = torch.istft(mag * angles, n_fft, hop, window=window)
        again = torch.stft(wave, n_fft, hop, window=window, return_complex=True)
        angles = again / again.abs().clamp(min=1e-8)
    return torch.istft(mag * angles, n_fft, hop, window=window)


batches = [make_batch() for _ in range(3)]
model = Tacotron().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6, eps=1e-6)
model.train()
for text, lengths, mels, gate, frames in batches:
    text, lengths, mels, gate = text.cuda(), lengths.cuda(), mels.cuda(), gate.cuda()
    model.zero_grad()
    mel, post, gates, align = model(text, lengths, mels)
    pad = mask_of(frames.cuda())
    mel = mel.masked_fill(pad.unsqueeze(-1), 0)
    post = post.masked_fill(pad.unsqueeze(-1), 0)
    loss = F.mse_loss(mel, mels) + F.mse_loss(post, mels)
    loss = loss + F.binary_cross_entropy_with_logits(gates, gate[:, R - 1 :: R])
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(loss.item(), norm.item(), flush=True)

with torch.no_grad():
    inverse = torch.linalg.pinv(torch.rand(N_MELS, 513, device="cuda"))
    mag = (post.detach() @ inverse.t()).clamp(min=0).transpose(1, 2)
    wave = griffin_lim(mag)
print(wave.shape)
