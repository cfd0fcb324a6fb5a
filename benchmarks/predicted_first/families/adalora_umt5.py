"""Summaries with UMT5 under AdaLoRA, whose ranks are given out anew during the training, with Accelerate in bf16."""

import torch
from accelerate import Accelerator
from peft import AdaLoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import UMT5Config, UMT5ForConditionalGeneration, get_linear_schedule_with_warmup


def collate(rows):
    sources = torch.nn.utils.rnn.pad_sequence([row[0] for row in rows], batch_first=True)
    targets = torch.nn.utils.rnn.pad_sequence([row[1] for row in rows], batch_first=True, padding_value=-100)
    return {"input_ids": sources, "attention_mask": (sources != 0).long(), "labels": targets}


generator = torch.Generator().manual_seed(11)
texts = [
    (
        torch.randint(3, 250000, (int(torch.randint(400, 769, (), generator=generator)),), generator=generator),
        torch.randint(3, 250000, (int(torch.randint(40, 129, (), generator=generator)),), generator=generator),
    )
    for _ in range(48)
]
accelerator = Accelerator(mixed_precision="bf16")
config = UMT5Config(
    vocab_size=256384, d_model=768, d_kv=64, d_ff=2048, num_layers=8, num_heads=12, feed_forward_proj="gated-gelu",
    decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
)
model = UMT5ForConditionalGeneration(config)
train = DataLoader(texts[:32], shuffle=True, collate_fn=collate, batch_size=8, pin_memory=True)
valid = DataLoader(texts[32:], collate_fn=collate, batch_size=8)
steps = len(train)
adapters = AdaLoraConfig(
    init_r=12, target_r=8, beta1=0.85, beta2=0.85, tinit=1, tfinal=1, deltaT=1, lora_alpha=32, lora_dropout=0.1, total_step=steps,
    task_type=TaskType.SEQ_2_SEQ_LM, inference_mode=False, target_modules=["q", "v", "wi_0", "wo"],
)
model = get_peft_model(model, adapters)
model.print_trainable_parameters()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = get_linear_schedule_with_warmup(optimizer, 0, steps)
model, train, valid, optimizer, schedule = accelerator.prepare(model, train, valid, optimizer, schedule)
model.base_model.peft_config["default"].total_step = steps
model.train()
total_loss = 0
for step, batch in enumerate(tqdm(train)):
    outputs = model(**batch)
    loss = outputs.loss
    total_loss += loss.detach().float()
    accelerator.backward(loss)
    optimizer.step()
    schedule.step()
    model.base_model.update_and_allocate(step + 1)
    optimizer.zero_grad()
model.eval()
with torch.inference_mode():
    for batch in valid:
        batch = {k: v for k, v in batch.items() if k != "labels"}
        written = accelerator.unwrap_model(model).generate(**batch, max_new_tokens=24, do_sample=False)
        written = accelerator.pad_across_processes(written, dim=1, pad_index=0)
        written = accelerator.gather_for_metrics(written)
accelerator.print(total_loss / steps, written.shape)
