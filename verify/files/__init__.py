"""Files, which need not be trusted: instances, certificates, tables and archives; what is printed.

What is decided here is *which* problem a certificate is checked against (``instance``); a mistake here
speaks about the wrong problem, but proves nothing false about the one that it hands to the kernel.
"""
