"""Certificates: from a result to a file that anyone can check (docs/certificate_spec_v2.md)."""

from milp_recourse.certificates.produce import (
    TOO_MUCH,
    canonical_content,
    certificates_for,
    encode,
    instance_digest,
    reason_for_none,
    why_none,
    why_not,
    without_certificate,
)

__all__ = [
    "TOO_MUCH",
    "canonical_content",
    "certificates_for",
    "encode",
    "instance_digest",
    "reason_for_none",
    "why_none",
    "why_not",
    "without_certificate",
]
