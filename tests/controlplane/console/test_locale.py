"""Every text of the product is translated with its placeholders; the compiled file is fresh."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import polib
from django.utils.translation.template import templatize

from tests.architecture.sources import ROOT, tracked

FOLDER = ROOT / "controlplane" / "locale" / "ko" / "LC_MESSAGES"
CATALOGUE = polib.pofile(str(FOLDER / "django.po"))
ENTRIES = [entry for entry in CATALOGUE if not entry.obsolete]
_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{[\w.]*\}|%%")
_PARTICLE = re.compile(r"(?:%\(\w+\)[sd]|\{[\w.]*\})['”]?(?:은|는|이|가|을|를|와|과)(?![가-힣])")
_IN_TEMPLATE = re.compile(
    r"(p|n|np)?gettext\(\s*(u?'(?:[^'\\]|\\.)*'|u?\"(?:[^\"\\]|\\.)*\")"
    r"(?:\s*,\s*(u?'(?:[^'\\]|\\.)*'|u?\"(?:[^\"\\]|\\.)*\"))?"
)
_FUNCTIONS = {"_": 0, "gettext": 0, "gettext_lazy": 0, "ngettext": 0, "ngettext_lazy": 0,
              "pgettext": 1, "pgettext_lazy": 1}  # fmt: skip


def translation(entry: polib.POEntry) -> str:
    return str(entry.msgstr_plural[0] if entry.msgid_plural else entry.msgstr)


def test_no_entry_is_missing_fuzzy_or_left_over() -> None:
    wrong = [entry.msgid for entry in CATALOGUE if not translation(entry) or entry.fuzzy]

    assert wrong == []
    assert [entry.msgid for entry in CATALOGUE if entry.obsolete] == []


def test_every_text_of_the_sources_has_an_entry() -> None:
    known = {(entry.msgctxt or "", entry.msgid) for entry in ENTRIES}
    used = {*_texts_of_code(), *_texts_of_templates()}

    assert sorted(used - known) == []


def test_every_translation_keeps_its_placeholders() -> None:
    wrong = [entry.msgid for entry in ENTRIES if not _keeps_placeholders(entry)]

    assert wrong == []


def test_no_particle_follows_a_placeholder() -> None:
    found = [translation(entry) for entry in ENTRIES if _PARTICLE.search(translation(entry))]

    assert found == []


def test_the_fixed_terms_are_used() -> None:
    fixed = {
        "prefill": "프리필", "decode": "디코드", "both": "겸용", "idle": "유휴",
        "unassigned": "미배정", "healthy": "정상", "degraded": "저하", "unknown": "알 수 없음",
        "unavailable": "사용 불가", "transition": "전환", "no data": "데이터 없음",
        "stale": "오래된 값", "measured": "실측", "modelled": "모형 추정",
        "estimate (simulated)": "시뮬레이션 추정", "Change plans": "변경 계획", "Approve": "승인",
        "Apply": "적용", "Observe": "관찰", "Roll back": "롤백", "Drain": "드레인",
        "Cordon": "스케줄 제외", "Tenant": "테넌트", "Ledger": "원장", "Wave": "웨이브",
        "Node": "노드", "Accelerator": "가속기", "Pool": "풀", "Endpoint": "엔드포인트",
        "Role": "역할",
    }  # fmt: skip
    written = {entry.msgid: translation(entry) for entry in ENTRIES}

    assert {word: written[word] for word in fixed} == fixed


def test_the_compiled_file_is_the_compiled_catalogue() -> None:
    compiled = polib.mofile(str(FOLDER / "django.mo"))

    assert {(entry.msgctxt, entry.msgid): translation(entry) for entry in compiled} == {
        (entry.msgctxt, entry.msgid): translation(entry) for entry in ENTRIES
    }


def _keeps_placeholders(entry: polib.POEntry) -> bool:
    wanted = set(_PLACEHOLDER.findall(f"{entry.msgid} {entry.msgid_plural}"))
    return set(_PLACEHOLDER.findall(translation(entry))) == wanted


def _texts_of_code() -> Iterator[tuple[str, str]]:
    for path in tracked("controlplane/*.py", "inventory/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield from _text_of(node)


def _text_of(call: ast.Call) -> Iterator[tuple[str, str]]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name not in _FUNCTIONS or not call.args:
        return
    texts = [each.value for each in call.args if isinstance(each, ast.Constant)]
    place = _FUNCTIONS[name]
    if len(texts) > place and isinstance(texts[place], str):
        yield (str(texts[0]) if place else "", str(texts[place]))


def _texts_of_templates() -> Iterator[tuple[str, str]]:
    for path in tracked("templates/*.html"):
        for kind, first, second in _IN_TEMPLATE.findall(_templatized(path)):
            texts = [ast.literal_eval(text) for text in (first, second) if text]
            context = texts.pop(0) if kind in ("p", "np") else ""
            yield context, texts[0]


def _templatized(path: Path) -> str:
    return str(templatize(path.read_text(), origin=str(path)))
