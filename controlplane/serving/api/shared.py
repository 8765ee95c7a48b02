"""Forms of answers that several resources of serving have."""

CONDITIONS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": {"type": "string"},
            "message": {"type": "string"},
            "hint": {"type": "string", "description": "What to do; of engines only."},
            "at": {"type": "string", "format": "date-time"},
        },
    },
}
