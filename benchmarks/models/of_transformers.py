"""Small models of transformers, forward and backward: one line each, what came out or what was raised."""

from __future__ import annotations

import torch
import transformers

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 100,
    "attn_implementation": "eager",
}
TEXT = (
    *("Bert", "Deberta", "DebertaV2", "Longformer", "BigBird", "MPNet", "Nystromformer", "RoFormer", "ConvBert", "Mra"),
    *("Llama", "GPT2", "GPTNeoX", "OPT", "Bloom", "Falcon", "Mamba", "T5", "Bart"),
)
IMAGES = ("ViT", "Beit", "Swin", "ConvNext", "MobileViT", "Segformer", "Cvt")

torch.set_num_threads(1)
ids = torch.arange(24).reshape(2, 12)
for name in (*TEXT, *IMAGES):
    torch.manual_seed(0)
    try:
        config = getattr(transformers, f"{name}Config")
        model = getattr(transformers, f"{name}Model")(config(**(SIZES if name in TEXT else {}))).eval()
        given = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
        first = model(ids if name in TEXT else torch.rand(1, 3, 224, 224), **given)[0]
        first.square().mean().backward()
        grad = sum(p.grad.double().abs().sum().item() for p in model.parameters() if p.grad is not None)
        print(name, first.double().sum().item(), grad, flush=True)
    except Exception as error:
        print(name, type(error).__name__, str(error)[:60], flush=True)
