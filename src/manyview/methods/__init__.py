"""The two methods: stages, loops and estimators."""
