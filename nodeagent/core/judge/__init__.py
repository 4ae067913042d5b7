"""The verdict of each device, from the state, and the events that show it. No fault opens or closes here."""
