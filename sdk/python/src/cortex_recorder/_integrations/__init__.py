"""Integrations of one line each. They import nothing of the packages they serve: they read the shapes
that these packages hand over, and keep away from a program that has others."""
from .agents import agents_processor
from .anthropic import instrument_anthropic
from .claude import watch_claude
from .langchain import langchain_handler
from .mcp import instrument_mcp
from .openai import instrument_openai
from .otel import otel_processor

__all__ = ["agents_processor", "instrument_anthropic", "instrument_mcp", "instrument_openai",
           "langchain_handler", "otel_processor", "watch_claude"]
