"""Writes a tiny language model with random weights, two LoRA adapters for it, and its tokenizer.

Run by vLLM's own environment: `python tiny_model.py FOLDER` makes `FOLDER/tiny`, `FOLDER/red` and
`FOLDER/blue`. Nothing is fetched: the tokenizer is trained on the standard library's sources.
What the model says is nonsense, but always the same nonsense, and each prompt has its own.
"""

import json
import sys
import sysconfig
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

NAME, ADAPTERS = "tiny", ("red", "blue")
VOCABULARY, LAYERS, HIDDEN, INNER, HEADS, KV_HEADS = 4096, 2, 128, 256, 4, 2
HEAD_SIZE = HIDDEN // HEADS
POSITIONS = 8192
RANK = 8
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]
TEMPLATE = (
    "{%- for message in messages -%}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n{%- endif -%}"
)


def main() -> None:
    """Write all three."""
    folder = Path(sys.argv[1])
    torch.manual_seed(2026)
    write_tokenizer(folder / NAME)
    write_model(folder / NAME)
    for name in ADAPTERS:
        write_adapter(folder / name)


def write_tokenizer(folder: Path) -> None:
    """Byte-level BPE: every text has tokens, and tokens of ordinary text are a few letters long."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    tokenizer.train([str(path) for path in sources[:100]], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": POSITIONS,
        "bos_token": SPECIAL[0],
        "eos_token": SPECIAL[2],
        "pad_token": SPECIAL[3],
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))


def write_model(folder: Path) -> None:
    """A Llama of two layers. Weights are large enough for prompts to have answers of their own."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_SIZE,
        "max_position_embeddings": POSITIONS,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "pad_token_id": 3,
        "torch_dtype": "bfloat16",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    weights = {
        "model.embed_tokens.weight": random_matrix(VOCABULARY, HIDDEN),
        "model.norm.weight": ones(HIDDEN),
        "lm_head.weight": random_matrix(VOCABULARY, HIDDEN),
    }
    for layer in range(LAYERS):
        begin = f"model.layers.{layer}."
        weights |= {
            f"{begin}self_attn.q_proj.weight": random_matrix(HEADS * HEAD_SIZE, HIDDEN),
            f"{begin}self_attn.k_proj.weight": random_matrix(KV_HEADS * HEAD_SIZE, HIDDEN),
            f"{begin}self_attn.v_proj.weight": random_matrix(KV_HEADS * HEAD_SIZE, HIDDEN),
            f"{begin}self_attn.o_proj.weight": random_matrix(HIDDEN, HEADS * HEAD_SIZE),
            f"{begin}mlp.gate_proj.weight": random_matrix(INNER, HIDDEN),
            f"{begin}mlp.up_proj.weight": random_matrix(INNER, HIDDEN),
            f"{begin}mlp.down_proj.weight": random_matrix(HIDDEN, INNER),
            f"{begin}input_layernorm.weight": ones(HIDDEN),
            f"{begin}post_attention_layernorm.weight": ones(HIDDEN),
        }
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})


def write_adapter(folder: Path) -> None:
    """A LoRA adapter of the attention, in the form of the PEFT library."""
    folder.mkdir(parents=True, exist_ok=True)
    outputs = {"q_proj": HEADS * HEAD_SIZE, "v_proj": KV_HEADS * HEAD_SIZE}
    weights = {}
    for layer in range(LAYERS):
        for part, size in outputs.items():
            begin = f"base_model.model.model.layers.{layer}.self_attn.{part}."
            weights[f"{begin}lora_A.weight"] = random_matrix(RANK, HIDDEN)
            weights[f"{begin}lora_B.weight"] = random_matrix(size, RANK)
    save_file(weights, str(folder / "adapter_model.safetensors"))
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": NAME,
        "target_modules": list(outputs),
        "r": RANK,
        "lora_alpha": 2 * RANK,
        "lora_dropout": 0.0,
        "bias": "none",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1))


def random_matrix(rows: int, columns: int) -> torch.Tensor:
    """Normally distributed, with a spread that keeps attention uneven."""
    return (0.1 * torch.randn(rows, columns)).to(torch.bfloat16)


def ones(size: int) -> torch.Tensor:
    """Scales of a norm."""
    return torch.ones(size, dtype=torch.bfloat16)


if __name__ == "__main__":
    main()
