"""A text-to-speech model on utterances of many lengths."""

import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()
random.seed(0)


class Acoustic(nn.Module):
    """Characters (batch, text) and frames (batch, frames, 80) to the log-probabilities of an alignment and frames."""

    def __init__(self, width=128):
        super().__init__()
        self.embed = nn.Embedding(100, width)
        self.encoder = nn.Conv1d(width, width, 5, padding=2)
        self.decoder = nn.Sequential(nn.Linear(80, width), nn.ReLU(), nn.Linear(width, width))
        self.output = nn.Linear(2 * width, 80)

    def forward(self, characters, mel):
        text = self.encoder(self.embed(characters).transpose(1, 2)).transpose(1, 2)
        frames = self.decoder(mel)
        distances = torch.cdist(frames, text)
        log_probs = F.log_softmax(-distances, dim=-1)
        alignment = log_probs.exp()
        context = alignment @ text
        mel_out = self.output(torch.cat([frames, context], dim=-1))
        return {
            "model_outputs": mel_out,
            "alignments": alignment,
            "log_probs": log_probs,
            "distances": distances,
            "means": context,
        }


model = Acoustic().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def train_step(characters, mel):
    outputs = model(characters, mel)
    loss = F.l1_loss(outputs["model_outputs"], mel) - outputs["log_probs"].max(dim=-1).values.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return outputs, loss


for step in range(20):
    num_frames = random.randint(700, 1400)
    characters = torch.randint(100, (32, num_frames // 2)).cuda()
    mel = torch.randn(32, num_frames, 80).cuda()
    outputs, loss = train_step(characters, mel)
    print(f"step {step}: {num_frames} frames, loss {loss.item():.4f}, peak {outputs['alignments'].max().item():.3f}")
    if args.fixed:
        del outputs, loss
