"""Properties of molecules with torch_geometric.

python train.py --conv gine
"""

import argparse

import torch
import torch.nn.functional as F
from model import Net
from torch_geometric import seed_everything
from torch_geometric.loader import DataLoader

from data import Molecules


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--conv", choices=["gine", "gat"], default="gine")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    seed_everything(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    dataset = Molecules(512).shuffle()
    train = DataLoader(dataset[:384], batch_size=args.batch_size, shuffle=True, num_workers=2)
    valid = DataLoader(dataset[384:], batch_size=2 * args.batch_size)
    model = Net(args.conv, args.width, args.depth).to(device)
    with torch.no_grad():  # the head takes its shape from a first batch
        model(next(iter(valid)).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for batch in train:
            batch = batch.to(device)
            optimizer.zero_grad()
            loss = F.l1_loss(model(batch), batch.y)
            loss.backward()
            optimizer.step()
            total += loss.item() * batch.num_graphs
        print(f"epoch {epoch}: train {total / len(train.dataset):.4f}, valid {evaluate(model, valid, device):.4f}")


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    errors = [F.l1_loss(model(batch.to(device)), batch.y.to(device), reduction="sum").item() for batch in loader]
    return sum(errors) / len(loader.dataset)


if __name__ == "__main__":
    main()
