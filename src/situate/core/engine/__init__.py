"""The scheduler put together: profiles from a configuration, and a whole decision about one pod."""
