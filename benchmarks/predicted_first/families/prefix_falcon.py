"""peft's prefix tuning: trained keys and values before a frozen Falcon in half precision, GradScaler, one head of keys."""

import torch
from peft import PrefixTuningConfig, TaskType, get_peft_model
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, Dataset
from transformers import FalconConfig, FalconForCausalLM


class Prompts(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        ids = torch.randint(12, 65000, (640,))
        mask = (torch.arange(640) >= 16 * (index % 12)).long()
        return {"input_ids": ids * mask, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


torch.manual_seed(0)
config = FalconConfig(
    vocab_size=65024, hidden_size=2304, num_hidden_layers=16, num_attention_heads=36, multi_query=True, parallel_attn=True,
    new_decoder_architecture=False, alibi=False, bias=False,
)
model = FalconForCausalLM(config).half()
peft_config = PrefixTuningConfig(
    task_type=TaskType.CAUSAL_LM, num_virtual_tokens=30, prefix_projection=True, encoder_hidden_size=1024, token_dim=64,
    num_attention_heads=1,
)
model = get_peft_model(model, peft_config).cuda()
for parameter in model.parameters():
    if parameter.requires_grad:
        parameter.data = parameter.data.float()
model.print_trainable_parameters()
loader = DataLoader(Prompts(), batch_size=8, shuffle=True, num_workers=2, pin_memory=True, persistent_workers=True)
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=3e-3)
scheduler = OneCycleLR(optimizer, max_lr=3e-3, total_steps=12)
scaler = torch.amp.GradScaler("cuda")
for epoch in range(2):
    model.train()
    for step, batch in enumerate(loader):
        batch = {key: value.to("cuda", non_blocking=True) for key, value in batch.items()}
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(**batch).loss
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        if step == 2:
            break
    model.eval()
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
        print(epoch, loss.item(), model(**batch).loss.item())
