"""Log-mel spectrograms on the card, and SpecAugment."""

import math

import torch
from torch import nn


def mel_filters(num_bins, num_mels, sample_rate):
    """Triangles on the mel scale (num_mels, num_bins)."""
    top = 2595 * math.log10(1 + sample_rate / 2 / 700)
    hertz = 700 * (10 ** (torch.linspace(0, top, num_mels + 2) / 2595) - 1)
    bins = torch.linspace(0, sample_rate / 2, num_bins)
    left, center, right = hertz[:-2, None], hertz[1:-1, None], hertz[2:, None]
    rising, falling = (bins - left) / (center - left), (right - bins) / (right - center)
    return torch.minimum(rising, falling).clamp(min=0)


class LogMel(nn.Module):
    """Waveforms (batch, samples) to (batch, frames, num_mels), and the number of frames of each."""

    def __init__(self, sample_rate=16000, n_fft=400, hop=160, num_mels=80):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("filters", mel_filters(n_fft // 2 + 1, num_mels, sample_rate))

    @torch.no_grad()
    def forward(self, waves, lengths):
        spectrum = torch.stft(waves, self.n_fft, self.hop, window=self.window, return_complex=True)
        mel = torch.matmul(self.filters, spectrum.abs().pow(2)).clamp(min=1e-10).log()
        mel = (mel - mel.mean(dim=-1, keepdim=True)) / (mel.std(dim=-1, keepdim=True) + 1e-5)
        return mel.transpose(1, 2), lengths // self.hop + 1


class SpecAugment(nn.Module):
    """Zeros stripes of time and of frequency, others in each sample."""

    def __init__(self, freq_width=15, time_width=40, stripes=2):
        super().__init__()
        self.freq_width, self.time_width, self.stripes = freq_width, time_width, stripes

    def forward(self, mel):
        if not self.training:
            return mel
        for _ in range(self.stripes):
            mel = self._mask(mel, 1, self.time_width)
            mel = self._mask(mel, 2, self.freq_width)
        return mel

    def _mask(self, mel, dim, width):
        size = mel.shape[dim]
        start = torch.rand(mel.shape[0], 1, device=mel.device) * max(1, size - width)
        length = torch.rand(mel.shape[0], 1, device=mel.device) * width
        at = torch.arange(size, device=mel.device)
        mask = (at >= start) & (at < start + length)
        return mel.masked_fill(mask.unsqueeze(3 - dim), 0.0)
