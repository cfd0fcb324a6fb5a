"""Sound in tokens: weight-normalised convolutions, residual quantisation, spectrograms as loss and as what a judge sees."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

BATCH, SAMPLES, DIM, CODES, LEVELS = 12, 24000, 128, 1024, 8


class Residual(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.wide = weight_norm(nn.Conv1d(width, width // 2, 3, dilation=dilation, padding=dilation, padding_mode="reflect"))
        self.narrow = weight_norm(nn.Conv1d(width // 2, width, 1))

    def forward(self, x):
        return x + self.narrow(F.elu(self.wide(F.elu(x))))


class Recurrent(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(width, width, 2)

    def forward(self, x):
        return self.lstm(x.permute(2, 0, 1))[0].permute(1, 2, 0) + x


def encoder(width=32):
    layers = [weight_norm(nn.Conv1d(1, width, 7, padding=3))]
    for stride in (2, 4, 5, 8):
        layers += [Residual(width, 1), nn.ELU(), weight_norm(nn.Conv1d(width, 2 * width, 2 * stride, stride, (stride + 1) // 2))]
        width *= 2
    return nn.Sequential(*layers, Recurrent(width), nn.ELU(), weight_norm(nn.Conv1d(width, DIM, 7, padding=3)))


def decoder(width=512):
    layers = [weight_norm(nn.Conv1d(DIM, width, 7, padding=3)), Recurrent(width)]
    for stride in (8, 5, 4, 2):
        up = nn.ConvTranspose1d(width, width // 2, 2 * stride, stride, (stride + 1) // 2, output_padding=stride % 2)
        layers += [nn.ELU(), weight_norm(up), Residual(width // 2, 1)]
        width //= 2
    return nn.Sequential(*layers, nn.ELU(), weight_norm(nn.Conv1d(width, 1, 7, padding=3)))


class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("books", torch.randn(LEVELS, CODES, DIM))
        self.register_buffer("counts", torch.ones(LEVELS, CODES))

    def forward(self, x):
        x = x.transpose(1, 2)
        rest, total, loss = x, 0, 0
        for level in range(LEVELS):
            flat = rest.detach().reshape(-1, DIM)
            book = self.books[level]
            distances = flat.square().sum(1, keepdim=True) - 2 * flat @ book.t() + book.square().sum(1)
            chosen = distances.argmin(1)
            onehot = F.one_hot(chosen, CODES).type_as(flat)
            self.counts[level].mul_(0.99).add_(onehot.sum(0), alpha=0.01)
            self.books[level].mul_(0.99).add_(onehot.t() @ flat, alpha=0.01)
            found = F.embedding(chosen, book).view_as(rest)
            loss = loss + F.mse_loss(rest, found.detach())
            rest, total = rest - found.detach(), total + found
        return (x + (total - x).detach()).transpose(1, 2), loss


def spectrum(sound, size):
    window = torch.hann_window(size, device=sound.device)
    return torch.stft(sound.squeeze(1), size, size // 4, window=window, normalized=True, return_complex=True)


class Judge(nn.Module):
    def __init__(self, size, width=32):
        super().__init__()
        self.size = size
        self.layers = nn.ModuleList([weight_norm(nn.Conv2d(2, width, (3, 9), padding=(1, 4)))])
        for dilation in (1, 2, 4):
            self.layers.append(weight_norm(nn.Conv2d(width, width, (3, 9), (1, 2), (dilation, 4), (dilation, 1))))
        self.last = weight_norm(nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, sound):
        z = spectrum(sound, self.size)
        x, features = torch.stack([z.real, z.imag], 1).transpose(2, 3), []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.2)
            features.append(x)
        return self.last(x), features


torch.manual_seed(0)
coder, quantizer, back = encoder().cuda(), Quantizer().cuda(), decoder().cuda()
judges = nn.ModuleList(Judge(size) for size in (2048, 1024, 512)).cuda()
of_codec = torch.optim.AdamW([*coder.parameters(), *back.parameters()], 3e-4, betas=(0.5, 0.9))
of_judges = torch.optim.AdamW(judges.parameters(), 3e-4, betas=(0.5, 0.9))
for _ in range(3):
    sound = torch.randn(BATCH, 1, SAMPLES).cuda()
    codes, commit = quantizer(coder(sound))
    made = back(codes)[..., :SAMPLES]
    judged = sum(F.relu(1 - judge(sound)[0]).mean() + F.relu(1 + judge(made.detach())[0]).mean() for judge in judges)
    of_judges.zero_grad()
    judged.backward()
    of_judges.step()
    loss = commit + F.l1_loss(made, sound)
    for size in (2048, 1024, 512, 256, 128):
        loss = loss + (spectrum(made, size).abs() - spectrum(sound, size).abs()).abs().mean()
    for judge in judges:
        score, features = judge(made)
        with torch.no_grad():
            wanted = judge(sound)[1]
        loss = loss - score.mean() + sum(F.l1_loss(a, b) for a, b in zip(features, wanted, strict=True))
    of_codec.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(coder.parameters(), 1.0)
    of_codec.step()
    print("loss", loss.item(), judged.item(), flush=True)
