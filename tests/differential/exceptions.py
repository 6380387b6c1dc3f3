"""Differences from tshark that are meant, each with its reason. `README.md` says why wirelab is right in each case."""


def reason(name: str, ours, theirs, context: dict) -> str | None:
    """Why a cell may differ; None where it may not."""
    for text, applies in RULES:
        if applies(name, ours, theirs, context):
            return text
    return None


RULES = []
