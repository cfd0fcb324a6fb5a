"""The options of train.py: those of a YAML file, and over them the command line."""

import argparse

import yaml


def parse_args():
    config_parser = argparse.ArgumentParser(add_help=False)
    config_parser.add_argument("-c", "--config", default="")
    config, remaining = config_parser.parse_known_args()
    parser = _parser()
    if config.config:
        with open(config.config) as f:
            parser.set_defaults(**yaml.safe_load(f))
    args = parser.parse_args(remaining)
    return args, yaml.safe_dump(vars(args), default_flow_style=False)


def _parser():
    parser = argparse.ArgumentParser(description="Image classification")
    parser.add_argument("--data-dir", default="images")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--num-classes", type=int)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--validation-batch-size", type=int)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--opt", default="sgd")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=2e-5)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--sched", default="cosine")
    parser.add_argument("--warmup-epochs", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--mixup", type=float, default=0.0)
    parser.add_argument("--cutmix", type=float, default=0.0)
    parser.add_argument("--smoothing", type=float, default=0.1)
    parser.add_argument("--drop-path", type=float)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--model-ema", action="store_true")
    parser.add_argument("--model-ema-decay", type=float, default=0.9998)
    parser.add_argument("--clip-grad", type=float)
    parser.add_argument("--grad-accum-steps", type=int, default=1)
    parser.add_argument("--grad-checkpointing", action="store_true")
    parser.add_argument("--output", default="output")
    parser.add_argument("--seed", type=int, default=42)
    return parser
