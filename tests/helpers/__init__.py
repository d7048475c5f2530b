"""What tests of several folders share: drawn problems, plain meanings, brute force."""
