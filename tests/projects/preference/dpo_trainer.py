"""Direct preference optimization as a Trainer; the reference model is the policy without its adapters."""

import torch
import torch.nn.functional as F
from transformers import Trainer

from data import IGNORED


class DPOTrainer(Trainer):
    def __init__(self, *args, beta=0.1, **kwargs):
        super().__init__(*args, **kwargs)
        self.beta = beta
        self._margins = []

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        chosen, rejected = self._log_probs(model, inputs)
        with torch.no_grad(), self.accelerator.unwrap_model(model).disable_adapter():
            ref_chosen, ref_rejected = self._log_probs(model, inputs)
        margin = self.beta * ((chosen - ref_chosen) - (rejected - ref_rejected))
        loss = -F.logsigmoid(margin).mean()
        self._margins.append(margin.detach().mean())
        return (loss, {"margin": margin.detach()}) if return_outputs else loss

    def _log_probs(self, model, inputs):
        """The log probabilities of the answers: of the chosen ones and of the rejected ones, each (batch,)."""
        logits = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], use_cache=False).logits
        labels = inputs["labels"][:, 1:]
        answered = labels != IGNORED
        log_probs = logits[:, :-1].float().log_softmax(-1)
        per_token = log_probs.gather(2, labels.masked_fill(~answered, 0).unsqueeze(2)).squeeze(2)
        return (per_token * answered).sum(-1).chunk(2)

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        with torch.no_grad(), self.compute_loss_context_manager():
            loss, outputs = self.compute_loss(model, self._prepare_inputs(inputs), return_outputs=True)
        margin = outputs["margin"]
        return loss, margin, torch.zeros_like(margin)

    def log(self, logs, *args, **kwargs):
        if self._margins:
            logs["rewards/margins"] = torch.stack(self._margins).mean().item()
            self._margins.clear()
        super().log(logs, *args, **kwargs)
