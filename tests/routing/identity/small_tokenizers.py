"""Tokenizers of a few hundred tokens, trained here on a text of our own, and chat templates."""

from functools import cache

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from routing.identity.files import FileTokenizer, TokenizerFiles, tokenizer_of

TEXT = (
    "A router sends each question to the engine that answers it first. It knows what every engine "
    "remembers, how long its queue is and how fast it computes. Questions that begin alike belong "
    "together, because an engine need not compute the beginning again.\n\n"
    "def choose(engines, question):\n    return min(engines, key=lambda engine: engine.seconds)\n\n"
    "서울에는 엔진이 많다. 물음은 가장 빠른 곳으로 간다. 0 1 2 3 45 678 9.\n"
) * 4
SPECIAL = ("<|im_start|>", "<|im_end|>", "<|end|>")
SYSTEM = TEXT * 6
"""About 6 kB."""

CHATML = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nBe brief.<|im_end|>\n{% endif %}\n"
    "{% if tools %}<|im_start|>tools\n{{ tools | tojson }}<|im_end|>\n{% endif %}\n"
    "{% for message in messages %}\n"
    "<|im_start|>{{ message.role }}\n{{ message.content | trim }}"
    "{% for call in message.tool_calls or [] %}\n"
    "<call>{{ call.function.name }} {{ call.function.arguments | tojson }}</call>"
    "{% endfor %}<|im_end|>\n"
    "{% endfor %}\n"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def _trained(tokenizer: Tokenizer, **options: object) -> Tokenizer:
    trainer = trainers.BpeTrainer(vocab_size=600, show_progress=False, **options)
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in SPECIAL])
    return tokenizer


@cache
def byte_level() -> Tokenizer:
    """As GPT-2: words take the space before them."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _trained(tokenizer, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


@cache
def metaspace() -> Tokenizer:
    """As SentencePiece: the first word of a text gets a space, too."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    return _trained(tokenizer, special_tokens=["<unk>"])


@cache
def crossing() -> Tokenizer:
    """Tokens reach across spaces: such a text must not be cut."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    return _trained(tokenizer, special_tokens=["<unk>"])


def with_template(tokenizer: Tokenizer, template: str = CHATML) -> FileTokenizer:
    """A tokenizer as it is loaded from files."""
    files = TokenizerFiles(tokenizer=tokenizer.to_str().encode(), template=template.encode())
    return tokenizer_of(files, now=lambda form: f"<{form}>")
