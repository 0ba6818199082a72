"""What trainers of roles are made of: schedules, replay buffers, games in lockstep, and the roles themselves."""
