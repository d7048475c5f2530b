"""The file for an auditor: everything that was decided about some people, why, and how to check it."""

from milp_recourse.reports.audit.check_audit import check_audit
from milp_recourse.reports.audit.make_audit import Asked, write_audit

__all__ = ["Asked", "check_audit", "write_audit"]
