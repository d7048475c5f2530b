"""Check certificates of least-cost recourse: exact arithmetic, standard library only.

Written from ``docs/certificate_spec_v1.md``; "section" in these files means a section there.
"""
