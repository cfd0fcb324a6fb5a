"""Accelerate's nlp example on a share of the card: OPT, a batch that is halved until it fits, accumulation, gathered metrics."""

import torch
from accelerate import Accelerator
from accelerate.utils import find_executable_batch_size, set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import OPTConfig, OPTForSequenceClassification, get_linear_schedule_with_warmup


def loaders(batch_size):
    ids = torch.randint(5, 50000, (4096, 512))
    labels = torch.randint(0, 2, (4096,))
    train = DataLoader(TensorDataset(ids, labels), shuffle=True, batch_size=batch_size, drop_last=True)
    return train, DataLoader(TensorDataset(ids[:200], labels[:200]), batch_size=48)


def main():
    torch.cuda.set_per_process_memory_fraction(0.1)
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    set_seed(7)
    config = OPTConfig(
        hidden_size=1024, num_hidden_layers=14, ffn_dim=4096, num_attention_heads=16, word_embed_proj_dim=512, do_layer_norm_before=False,
        num_labels=2, pad_token_id=1,
    )

    @find_executable_batch_size(starting_batch_size=48)
    def inner_training_loop(batch_size):
        accelerator.free_memory()
        accelerator.print(f"batch size {batch_size}")
        model = OPTForSequenceClassification(config)
        optimizer = torch.optim.AdamW(params=model.parameters(), lr=2e-5)
        train, valid = loaders(batch_size)
        scheduler = get_linear_schedule_with_warmup(optimizer, 4, 40)
        model, optimizer, train, valid, scheduler = accelerator.prepare(model, optimizer, train, valid, scheduler)
        model.train()
        for step, (ids, labels) in enumerate(train):
            with accelerator.accumulate(model):
                loss = model(input_ids=ids, labels=labels).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if step == 5:
                break
        model.eval()
        right = seen = 0
        for ids, labels in valid:
            with torch.no_grad():
                logits = model(input_ids=ids).logits
            predicted, labels = accelerator.gather_for_metrics((logits.argmax(dim=-1), labels))
            right, seen = right + (predicted == labels).sum().item(), seen + len(labels)
        accelerator.print(f"accuracy {right / seen:.3f} of {seen}")

    inner_training_loop()
    accelerator.end_training()


if __name__ == "__main__":
    main()
