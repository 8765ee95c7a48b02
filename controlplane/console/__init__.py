"""Layout, navigation, dashboards, charts. No models, no rules."""
