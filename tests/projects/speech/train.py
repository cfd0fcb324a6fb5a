"""Trains a recogniser with CTC: `python train.py --max-seconds 40`."""

import argparse

import torch
from conformer import Conformer
from features import LogMel, SpecAugment
from torch import nn
from torch.utils.data import DataLoader

from data import BucketSampler, Utterances, collate


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--utterances", type=int, default=48)
    parser.add_argument("--max-seconds", type=int, default=120, help="of a batch, with padding")
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocab-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=20)
    return parser.parse_args()


class Recogniser(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.features = LogMel()
        self.augment = SpecAugment()
        self.encoder = Conformer(args.vocab_size, dim=args.dim, layers=args.layers)

    def forward(self, waves, lengths):
        mel, lengths = self.features(waves, lengths)
        return self.encoder(self.augment(mel), lengths)


def main():
    args = parse_args()
    torch.manual_seed(0)
    data = Utterances(args.utterances, 2.0, 12.0, args.vocab_size)
    sampler = BucketSampler(data.lengths, args.max_seconds * 16000)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=collate, num_workers=2, pin_memory=True)
    test_data = Utterances(4, 2.0, 12.0, args.vocab_size, seed=1)
    test_loader = DataLoader(test_data, batch_size=2, collate_fn=collate)
    model = Recogniser(args).cuda()
    ctc = nn.CTCLoss(zero_infinity=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 100))
    for epoch in range(args.epochs):
        model.train()
        for step, (waves, lengths, letters, letter_lengths) in enumerate(loader):
            waves, lengths = waves.cuda(non_blocking=True), lengths.cuda(non_blocking=True)
            with torch.autocast("cuda", torch.bfloat16):
                log_probs, frames = model(waves, lengths)
            loss = ctc(log_probs.float().transpose(0, 1), letters.cuda(), frames, letter_lengths.cuda())
            loss.backward()
            grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            print(f"epoch {epoch} batch {step}: {tuple(waves.shape)} loss {loss.item():.3f} norm {grad_norm:.3f}")
        print(f"epoch {epoch}: {error_rate(model, test_loader):.1%} of the letters wrong")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"epoch-{epoch}.pt")


@torch.inference_mode()
def error_rate(model, loader):
    """Of greedy decoding, position by position."""
    model.eval()
    wrong = total = 0
    for waves, lengths, letters, letter_lengths in loader:
        log_probs, frames = model(waves.cuda(), lengths.cuda())
        best = log_probs.argmax(-1).cpu()
        spoken = letters.split(letter_lengths.tolist())
        for row, num_frames, text in zip(best, frames.tolist(), spoken, strict=True):
            decoded = torch.unique_consecutive(row[:num_frames])
            decoded = decoded[decoded != 0]
            shared = min(len(decoded), len(text))
            wrong += len(text) - int((decoded[:shared] == text[:shared]).sum())
            total += len(text)
    return wrong / total


if __name__ == "__main__":
    main()
