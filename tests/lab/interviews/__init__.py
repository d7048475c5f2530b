"""Tests of the studies of interviews."""
