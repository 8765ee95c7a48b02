"""Chat templates are rendered as Hugging Face's library renders them."""

import pytest

from routing.identity.conversation import Conversation, NotPlainError
from routing.identity.template import ChatTemplate, TemplateFileError

HELLO = Conversation(messages=[{"role": "user", "content": "안녕"}])


def template(source: str) -> ChatTemplate:
    return ChatTemplate(source, special_tokens={"bos_token": "<s>"}, now=lambda form: f"now:{form}")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ bos_token }}{{ messages[0].content }}", "<s>안녕"),
        ("{% for m in messages %}\n  {% if m.role %}\nx\n  {% endif %}\n{% endfor %}", "x\n"),
        ("{{ messages[0] | tojson }}", '{"role": "user", "content": "안녕"}'),
        ("{{ strftime_now('%d %b %Y') }}", "now:%d %b %Y"),
        ("a{% generation %}b{% endgeneration %}c", "abc"),
        ("{% for m in [1, 2] %}{% if m == 2 %}{% break %}{% endif %}{{ m }}{% endfor %}", "1"),
        ("{% if add_generation_prompt %}open{% endif %}", "open"),
        ("{% for p in messages[0].content %}{{ p.type }}{{ p.text }}{% endfor %}", ""),
        (
            "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}",
            "안녕",
        ),
        ("{{ tools is none }}{{ documents is none }}", "TrueTrue"),
    ],
)
def test_what_templates_use(source: str, expected: str) -> None:
    assert template(source).render(HELLO) == expected


def test_options_of_a_body_are_variables_but_never_replace_the_messages() -> None:
    conversation = Conversation(
        messages=HELLO.messages, options={"thinking": False, "messages": [], "tools": 5}
    )

    text = template("{{ thinking }}{{ messages | length }}{{ tools }}").render(conversation)

    assert text == "False1None"


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('only user and assistant') }}",
        "{{ messages[5].content.strip() }}",
        "{{ 1 / 0 if false else messages[0].content + 5 }}",
        "{{ messages.append(5) }}",
        "{{ ''.__class__.__mro__ }}{{ messages.__class__.__base__.__subclasses__() }}",
    ],
)
def test_a_conversation_that_a_template_refuses_is_not_plain(source: str) -> None:
    with pytest.raises(NotPlainError) as caught:
        template(source).render(HELLO)

    assert caught.value.reason == "template-refused"


def test_a_template_that_cannot_be_read_is_named() -> None:
    with pytest.raises(TemplateFileError):
        template("{% for %}")
