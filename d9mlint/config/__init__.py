"""What a run is asked to do: settings, selected rules, target versions, files."""
