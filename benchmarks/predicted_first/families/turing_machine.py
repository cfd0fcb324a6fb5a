"""A neural Turing machine: heads that read and write by content and by shift, sequences copied from memory, of another length each time."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

WIDTH, CONTROLLER, N, M, BATCH, HEADS = 8, 256, 512, 64, 256, 2


def split_cols(mat, lengths):
    return torch.split(mat, lengths, dim=1)


def convolve(w, s):
    """Circular convolution of every row with its own three weights."""
    w = torch.cat([w[:, -1:], w, w[:, :1]], dim=1)
    return w[:, :-2] * s[:, 0:1] + w[:, 1:-1] * s[:, 1:2] + w[:, 2:] * s[:, 2:3]


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mem_bias", torch.empty(N, M).uniform_(-1 / (N + M) ** 0.5, 1 / (N + M) ** 0.5))

    def reset(self, batch):
        self.memory = self.mem_bias.clone().repeat(batch, 1, 1)

    def read(self, w):
        return torch.matmul(w.unsqueeze(1), self.memory).squeeze(1)

    def write(self, w, e, a):
        erase = torch.matmul(w.unsqueeze(-1), e.unsqueeze(1))
        add = torch.matmul(w.unsqueeze(-1), a.unsqueeze(1))
        self.memory = self.memory * (1 - erase) + add

    def address(self, k, beta, g, s, gamma, w_prev):
        wc = F.softmax(beta * F.cosine_similarity(self.memory + 1e-16, k.unsqueeze(1) + 1e-16, dim=-1), dim=1)
        wg = g * wc + (1 - g) * w_prev
        w = convolve(wg, s) ** gamma
        return torch.div(w, torch.sum(w, dim=1, keepdim=True) + 1e-16)


class Head(nn.Module):
    def __init__(self, memory, writes):
        super().__init__()
        self.memory, self.writes = memory, writes
        self.lengths = [M, 1, 1, 3, 1] + ([M, M] if writes else [])
        self.fc = nn.Linear(CONTROLLER, sum(self.lengths))
        nn.init.xavier_uniform_(self.fc.weight, gain=1.4)
        nn.init.normal_(self.fc.bias, std=0.01)

    def forward(self, controller, w_prev):
        k, beta, g, s, gamma, *rest = split_cols(self.fc(controller), self.lengths)
        w = self.memory.address(k, F.softplus(beta), torch.sigmoid(g), F.softmax(s, dim=1), 1 + F.softplus(gamma), w_prev)
        if self.writes:
            e, a = rest
            self.memory.write(w, torch.sigmoid(e), a)
            return None, w
        return self.memory.read(w), w


class NTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = Memory()
        self.heads = nn.ModuleList(Head(self.memory, writes) for _ in range(HEADS) for writes in (False, True))
        self.controller = nn.LSTMCell(WIDTH + 1 + HEADS * M, CONTROLLER)
        self.h_bias, self.c_bias = (nn.Parameter(torch.randn(1, CONTROLLER) * 0.05) for _ in range(2))
        self.fc = nn.Linear(CONTROLLER + HEADS * M, WIDTH)
        self.register_buffer("read_bias", torch.randn(HEADS, 1, M) * 0.01)

    def init_sequence(self, batch):
        self.memory.reset(batch)
        reads = [r.repeat(batch, 1) for r in self.read_bias]
        state = self.h_bias.repeat(batch, 1), self.c_bias.repeat(batch, 1)
        weights = [torch.zeros(batch, N, device=self.fc.weight.device) for _ in self.heads]
        self.previous = reads, state, weights

    def forward(self, x=None):
        reads, state, weights = self.previous
        if x is None:
            x = torch.zeros(len(reads[0]), WIDTH + 1, device=self.fc.weight.device)
        h, c = self.controller(torch.cat([x, *reads], dim=1), state)
        reads, new_weights = [], []
        for head, w in zip(self.heads, weights):
            r, w = head(h, w)
            new_weights.append(w)
            if r is not None:
                reads.append(r)
        self.previous = reads, (h, c), new_weights
        return torch.sigmoid(self.fc(torch.cat([h, *reads], dim=1)))


def copy_task(length):
    seq = torch.from_numpy(np.random.binomial(1, 0.5, (length, BATCH, WIDTH))).float()
    inp = torch.zeros(length + 1, BATCH, WIDTH + 1)
    inp[:length, :, :WIDTH] = seq
    inp[length, :, WIDTH] = 1.0
    return inp.cuda(), seq.cuda()


torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
net = NTM().cuda()
criterion = nn.BCELoss()
optimizer = torch.optim.RMSprop(net.parameters(), momentum=0.9, alpha=0.95, lr=1e-4)
losses, costs = [], []
for batch_num in range(4):
    x, y = copy_task(random.randint(8, 20))
    optimizer.zero_grad()
    net.init_sequence(BATCH)
    for t in range(x.size(0)):
        net(x[t])
    out = torch.zeros(y.size()).cuda()
    for t in range(y.size(0)):
        out[t] = net()
    loss = criterion(out, y)
    loss.backward()
    for p in net.parameters():
        if p.grad is not None:
            p.grad.data.clamp_(-10, 10)
    optimizer.step()
    losses.append(loss.item())
    costs.append((out.detach().cpu() > 0.5).float().sub(y.cpu()).abs().sum().item() / BATCH)
    print(f"batch {batch_num} length {y.size(0)} loss {losses[-1]:.4f} bits wrong {costs[-1]:.1f}", flush=True)
