"""`TOKENS`: what keys and tokens look like wherever they stand, for who hides them and for who searches for them."""

TOKENS = {
    "a Hugging Face token": r"(?:hf|api_org)_[A-Za-z0-9]{16,}",
    "an NVIDIA API key": r"nvapi-[A-Za-z0-9_-]{16,}",
    # An older key of NGC, which is base64.
    "an NGC API key": r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{82,84}={0,2}(?![A-Za-z0-9+/=])",
    "a JSON web token": r"eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]+",
    "an AWS key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a GitHub or GitLab token": r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,}|glpat-[\w-]{20,})",
    "a key of a web service": r"\b(?:sk-[\w-]{20,}|xox[abp]-[\w-]{12,})",
}
"""Regular expressions by what they find. They are ASCII, so that they are one for text and for bytes."""
